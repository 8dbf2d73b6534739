"""`agentsim run`: play a scenario."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentsim.cli.failures import ErrorFormat, told_as
from agentsim.cli.flags import (
    Agents,
    Cluster,
    Errors,
    File,
    Hosts,
    Rounds,
    Seed,
    Sessions,
    Set,
    Workers,
    hosts_of,
    overrides,
)


def run(
    file: File,
    agents: Agents = None,
    sessions: Sessions = None,
    rounds: Rounds = None,
    seed: Seed = None,
    hosts: Hosts = None,
    cluster: Cluster = None,
    workers: Workers = None,
    set_: Set = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The run's directory; must not exist. [default: runs/NAME-TIME-ID]"),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Go on with this run of the same scenario."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress, only the end.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print summary.json, nothing else.")] = False,
    error_format: Errors = ErrorFormat.TEXT,
) -> None:
    """Play a scenario and write what happened to a directory of its own."""
    from agentsim.cli.execute import execute

    flags = {"agents": agents, "sessions": sessions, "rounds": rounds, "seed": seed}
    with told_as(error_format):
        changed = overrides(flags, set_)
        sys.exit(
            execute(
                file,
                changed,
                hosts=hosts_of(hosts, cluster),
                workers=workers,
                out=out,
                resume=resume,
                quiet=quiet,
                json=json,
            )
        )
