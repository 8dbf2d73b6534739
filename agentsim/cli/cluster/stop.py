"""`agentsim cluster stop`: end a run at all nodes."""

from __future__ import annotations

import json as json_
from typing import Annotated

import typer

from agentsim.cli.cluster.common import Json, Name, finish, the_cluster


def stop(
    run: Annotated[
        str,
        typer.Argument(help="Its name, as `status` shows it: its directory's.", show_default=False),
    ],
    name: Name = None,
    json: Json = False,
) -> None:
    """End a run at all nodes; model servers stay.

    Its own program is told, ends with exit code 1 and leaves what was completed, as after Ctrl-C.
    """
    from agentsim.launch.looking import stop_run

    ended = finish(stop_run(the_cluster(name), run))
    if json:
        print(json_.dumps(ended, indent=2))
        return
    for host, what in ended.items():
        print(f"{host}: {what}")
