"""`agentsim logs`: the logs of a run."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Level(StrEnum):
    """Levels of log records, lowest first."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class Program(StrEnum):
    """Whose logs there are."""

    ORCHESTRATOR = "orchestrator"
    NODE = "node"
    WORKER = "worker"
    SERVER = "server"


def logs(
    run: Annotated[Path, typer.Argument(help="The run's directory.", show_default=False)],
    level: Annotated[Level, typer.Option(help="The lowest level that is shown.")] = Level.DEBUG,
    program: Annotated[
        list[Program] | None,
        typer.Option(help="Only of these programs; server: of model servers.", show_default=False),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the lines as they are.")] = False,
) -> None:
    """Show the logs of all of a run's programs, merged by time (UTC).

    Lines that are no records, such as what a model server prints, are shown as they are.
    """
    from rich.console import Console

    from agentsim.report.logs import Wanted, follow_logs, read_logs

    wanted = Wanted(level.value.upper(), frozenset(p.value for p in program or ()))
    console = Console() if sys.stdout.isatty() and not json else None
    for line in (follow_logs if follow else read_logs)(run, wanted):
        if console is not None:
            console.print(line.rich(), soft_wrap=True)
        else:
            print(line.raw if json else line.plain(), flush=follow)
