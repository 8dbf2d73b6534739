"""`agentsim report`: figures, tables and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[
        Path, typer.Argument(help="The directory of a run or sweep.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The report's folder; an older report there is replaced.  [default: RUN/report]"
        ),
    ] = None,
) -> None:
    """Write figures (PNG, SVG, PDF), tables (CSV) and report.html, which opens offline."""
    from agentsim.report import write_report

    page = write_report(run, out)
    print(page)
