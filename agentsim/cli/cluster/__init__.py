"""`agentsim cluster …`: one file a command."""

from __future__ import annotations

import typer

cluster = typer.Typer(
    help="Put agentsim on the machines of a hostfile, and keep it there.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@cluster.callback()
def _group() -> None:
    """Keeps this a group while it has fewer than two commands."""
