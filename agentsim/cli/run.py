"""`agentsim run`: play a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from agentsim.cli.failures import ErrorFormat, told_as

_WHAT = "In place of the scenario's"


def run(
    file: Annotated[Path, typer.Argument(help="The scenario.", show_default=False)],
    agents: Annotated[int | None, typer.Option(help=f"{_WHAT} agents.")] = None,
    sessions: Annotated[int | None, typer.Option(help=f"{_WHAT} sessions.")] = None,
    rounds: Annotated[int | None, typer.Option(help=f"{_WHAT} rounds.")] = None,
    seed: Annotated[int | None, typer.Option(help=f"{_WHAT} seed.")] = None,
    hosts: Annotated[Path | None, typer.Option(help="A hostfile.")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes on each host.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any field, e.g. model.temperature=0.5."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The run's directory; must not exist. [default: runs/NAME-TIME-ID]"),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress, only the end.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print summary.json, nothing else.")] = False,
    error_format: Annotated[
        ErrorFormat,
        typer.Option(help="How errors are written to stderr; json is for programs."),
    ] = ErrorFormat.TEXT,
) -> None:
    """Play a scenario and write what happened to a directory of its own."""
    from agentsim.cli.execute import execute
    from agentsim.config import split_set

    flags: dict[str, Any] = {
        "agents": agents,
        "sessions": sessions,
        "rounds": rounds,
        "seed": seed,
    }
    overrides = [(key, str(value), f"--{key}") for key, value in flags.items() if value is not None]
    with told_as(error_format):
        overrides += [split_set(text) for text in set_ or []]
        sys.exit(
            execute(file, overrides, hosts=hosts, workers=workers, out=out, quiet=quiet, json=json)
        )
