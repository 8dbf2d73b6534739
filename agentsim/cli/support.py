"""`agentsim support`: one archive for a bug report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def support(
    run: Annotated[Path, typer.Argument(help="The run's directory.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The archive.  [default: RUN-support.tar.gz]"),
    ] = None,
    replies: Annotated[
        bool, typer.Option("--replies", help="Also the journal: every prompt and reply.")
    ] = False,
) -> None:
    """Pack a run's manifest, summary, logs and versions into one archive for a bug report.

    Keys are masked. Persona texts, prompts and replies are left out unless you ask for them.
    """
    from agentsim.report.support import write_support

    made = write_support(run, out, replies=replies)
    print(made.path)
    print(f"{len(made.files)} files; secrets masked: {made.masked}; README.txt lists them")
    print(
        "it holds every prompt, persona text and reply: look whether you may pass them on"
        if made.replies
        else "no persona texts, prompts or replies are in it"
    )
