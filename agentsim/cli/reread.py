"""`agentsim reread`: a run's raw replies, read with today's rules."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentsim.cli.flags import named_runs


def reread(
    run: Annotated[Path, typer.Argument(help="The run's directory.", show_default=False)],
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with every reply that is read otherwise.")
    ] = False,
) -> None:
    """Read the raw replies of a run with today's rules and say what changes; nothing is written."""
    from agentsim.report import rereading
    from agentsim.report.words import Number
    from agentsim.results import read_manifest
    from agentsim.results.reread import reread as read_again

    with named_runs():
        result = read_again(run)
    if json:
        sys.stdout.writelines(rereading.as_json(result))
        return
    number = Number.of(read_manifest(run).get("rule"))
    sys.stdout.write(rereading.plain(result, number))
