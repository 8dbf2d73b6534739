"""`agentsim resume`: go on with a run that did not finish."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentsim.cli.failures import ErrorFormat, told_as
from agentsim.cli.flags import Cluster, hosts_of, overrides


def resume(
    run: Annotated[
        Path, typer.Argument(help="The directory of a run or a sweep.", show_default=False)
    ],
    hosts: Annotated[Path | None, typer.Option(help="Another hostfile.")] = None,
    cluster: Cluster = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes on each host.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A limit, e.g. limits.tokens=2000000."),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Of a sweep: play cells that failed again.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress, only the end.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print summary.json, nothing else.")] = False,
    error_format: Annotated[
        ErrorFormat,
        typer.Option(help="How errors are written to stderr; json is for programs."),
    ] = ErrorFormat.TEXT,
) -> None:
    """Go on with a run that was interrupted, or failed.

    What is in its journal is not asked again. Hosts, workers and limits may be others than before;
    they change no result.
    """
    from agentsim.cli.execute import go_on

    with told_as(error_format):
        limits = overrides({}, set_)
        sys.exit(
            go_on(
                run,
                limits,
                hosts=hosts_of(hosts, cluster),
                workers=workers,
                retry_failed=retry_failed,
                quiet=quiet,
                json=json,
            )
        )
