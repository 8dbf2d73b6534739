"""`agentsim rm`: remove runs and sweeps."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agentsim.results.removal import Doomed


def rm(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Their directories.", show_default=False)
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove runs and sweeps, after asking. Nothing goes that is no run or is being written."""
    from agentsim.errors import UserError
    from agentsim.results.removal import look_at, remove

    doomed = [look_at(path) for path in dict.fromkeys(runs)]
    for item in doomed:
        print(_line(item))
    if not yes:
        if not is_terminal():
            raise UserError("nothing was removed: there is nobody to ask; --yes removes unasked")
        what = "it" if len(doomed) == 1 else f"these {len(doomed)}"
        if not typer.confirm(f"Remove {what} for good?", default=False):
            print("nothing was removed", file=sys.stderr)
            sys.exit(1)
    for item in doomed:
        remove(item)
        print(f"removed {item.path}")


def is_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty()


def _line(item: Doomed) -> str:
    from agentsim.report.words import count, printable, size

    kind = "run"
    if item.cells is not None:
        kind = f"sweep of {count(item.cells)} cell{'' if item.cells == 1 else 's'}"
    facts = f"{kind}, {item.state}, {size(item.size_bytes)}, {count(item.rows)} rows"
    return f"{printable(item.name)}: {facts}\n  {printable(str(item.path))}"
