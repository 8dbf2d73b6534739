"""`agentsim cluster up`: start nodes that stay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentsim.cli.cluster.common import Json, OnStderr, finish, seconds


def up(
    hostfile: Annotated[Path, typer.Argument(help="The hostfile.", show_default=False)],
    name: Annotated[
        str | None, typer.Option(help="Of the cluster. [default: of the hostfile]")
    ] = None,
    idle: Annotated[
        str, typer.Option(help="Nodes end by themselves after so long without a run.")
    ] = "8h",
    slots: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Worker processes that each host may have at once, over all runs. "
            "[default: twice its workers]",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Start nodes that stay, for one run after another.

    Several runs share them at a time, models stay loaded between runs, and they outlive this
    shell. To use them: agentsim run SCENARIO --cluster NAME.
    """
    from agentsim.config import load_hostfile
    from agentsim.launch.staying import Terms, up

    terms = Terms(seconds(idle, "--idle"), slots)
    staying = finish(up(name or hostfile.stem, load_hostfile(hostfile), terms, OnStderr()))
    if json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(staying)).decode())
        return
    for node in staying.nodes:
        print(f"{node.host}: up, process {node.pid}, {node.slots} worker slots")
    print(f"\nnext: agentsim run SCENARIO --cluster {staying.name}")
