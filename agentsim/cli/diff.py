"""`agentsim diff`: at which layer two runs part."""

from __future__ import annotations

import json as json_
import sys
from pathlib import Path
from typing import Annotated

import typer

from agentsim.cli.flags import named_runs


def diff(
    left: Annotated[Path, typer.Argument(metavar="RUN", help="A run.", show_default=False)],
    right: Annotated[Path, typer.Argument(metavar="RUN", help="Another.", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say at which layer two runs part: files, versions, personas, prompts, replies, reading or
    results. Exit 0: equal in all that decides the result; 1: not; 2: one cannot be read."""
    from agentsim.report import differences
    from agentsim.results.compare import compare

    with named_runs():
        found = compare(left, right)
    if json:
        print(json_.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(differences.plain(found))
    sys.exit(0 if found.parting is None else 1)
