"""`agentsim show`: one agent of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def show(
    run: Annotated[Path, typer.Argument(help="The run's directory.", show_default=False)],
    session: Annotated[int, typer.Option(help="From 1.")] = 1,
    agent: Annotated[int, typer.Option(help="From 0.")] = 0,
    round: Annotated[int | None, typer.Option(help="From 1.  [default: all]")] = None,
) -> None:
    """Show one agent: persona, prompts, raw replies and how each was read."""
    from agentsim.report.agent import Who, show_agent

    sys.stdout.write(show_agent(run, Who(session, agent, round)))
