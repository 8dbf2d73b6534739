"""`agentsim run`: play a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentsim.cli.failures import ErrorFormat, told_as
from agentsim.cli.flags import WHAT, overrides


def run(
    file: Annotated[Path, typer.Argument(help="The scenario.", show_default=False)],
    agents: Annotated[int | None, typer.Option(help=f"{WHAT} agents.")] = None,
    sessions: Annotated[int | None, typer.Option(help=f"{WHAT} sessions.")] = None,
    rounds: Annotated[int | None, typer.Option(help=f"{WHAT} rounds.")] = None,
    seed: Annotated[int | None, typer.Option(help=f"{WHAT} seed.")] = None,
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

    flags = {"agents": agents, "sessions": sessions, "rounds": rounds, "seed": seed}
    with told_as(error_format):
        changed = overrides(flags, set_)
        sys.exit(
            execute(file, changed, hosts=hosts, workers=workers, out=out, quiet=quiet, json=json)
        )
