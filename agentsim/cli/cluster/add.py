"""`agentsim cluster add`: further hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentsim.cli.cluster.common import Json, Name, OnStderr, finish, the_cluster


def add(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST|HOSTFILE",
            help="A host's name, or a hostfile whose hosts are added.",
            show_default=False,
        ),
    ],
    name: Name = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Of a host that is named: its workers in each run.")
    ] = 2,
    slots: Annotated[
        int | None, typer.Option(min=1, help="As of `up`. [default: twice its workers]")
    ] = None,
    json: Json = False,
) -> None:
    """Add hosts to a cluster; runs that begin from now on use them."""
    from agentsim.config import load_hostfile
    from agentsim.config.hostfile import Host
    from agentsim.launch.staying import add

    staying = the_cluster(name)
    path = Path(host)
    is_file = path.suffix in (".yaml", ".yml") or path.is_file()
    hosts = load_hostfile(path).hosts if is_file else [Host(address=host, workers=workers)]
    nodes = finish(add(staying.name, hosts, slots, OnStderr()))
    if json:
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(nodes)).decode())
        return
    for node in nodes:
        print(f"{node.host}: up, process {node.pid}, {node.slots} worker slots")
