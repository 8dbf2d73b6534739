"""`agentsim cluster drain`: no new runs on a host."""

from __future__ import annotations

import json as json_
from typing import Annotated

import typer

from agentsim.cli.cluster.common import Json, Name, finish, the_cluster


def drain(
    host: Annotated[str, typer.Argument(help="As the hostfile calls it.", show_default=False)],
    name: Name = None,
    undo: Annotated[bool, typer.Option("--undo", help="Let it take runs again.")] = False,
    json: Json = False,
) -> None:
    """Let a host take no new runs; those that it has go on."""
    from agentsim.launch.looking import drain

    what = finish(drain(the_cluster(name).name, host, on=not undo))
    print(json_.dumps({"host": host, "draining": not undo}) if json else f"{host}: {what}")
