"""`agentsim runs`: the runs of a folder."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated

import typer


def runs(
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Holds the runs.")] = Path("runs"),
    json: Annotated[bool, typer.Option("--json", help="Print a JSON list.")] = False,
) -> None:
    """List runs with their state and headline figures, the newest first."""
    from agentsim.report.listing import as_data, list_runs, listing

    found = list_runs(folder)
    if json:
        print(json_.dumps([as_data(run) for run in found], indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(listing(found, folder))
