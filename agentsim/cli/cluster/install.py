"""`agentsim cluster install`: put agentsim on hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentsim.cli.cluster.common import finish


def install(
    hostfile: Annotated[Path, typer.Argument(help="Of the ssh launcher.", show_default=False)],
    extra: Annotated[
        list[str] | None,
        typer.Option(help="An optional part to install with it, e.g. llama-cpp; more than once."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
) -> None:
    """Put the agentsim that runs here on all hosts of a hostfile, through ssh.

    It goes into a virtual environment in each host's `workdir`, or into the host's `python` if the
    hostfile names one. What it needs comes from the host's own package index.
    """
    from agentsim.config import load_hostfile
    from agentsim.launch.install import Order, install

    finish(install(load_hostfile(hostfile), Order(tuple(extra or ()), dry_run), print))
