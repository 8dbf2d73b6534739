"""`agentsim cluster down`: end a cluster, and all that it started."""

from __future__ import annotations

import json as json_
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agentsim.cli.cluster.common import Json, Name, finish, the_cluster

if TYPE_CHECKING:
    from agentsim.launch.registry import Staying


def down(
    name: Name = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask when runs are going on.")] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Forget hosts that do not answer; they may still run."),
    ] = False,
    json: Json = False,
) -> None:
    """End a cluster and all that it started.

    That is its runs, workers, model servers, nodes, and their files.
    """
    from agentsim.errors import LaunchError
    from agentsim.launch.staying import down

    staying = the_cluster(name)
    if not yes:
        _ask(staying)
    ended = finish(down(staying.name, forget=forget))
    if json:
        print(json_.dumps({"cluster": staying.name, "hosts": ended.hosts}, indent=2))
    else:
        for host, what in ended.hosts.items():
            print(f"{host}: {what}")
    if ended.left and not forget:
        hosts = ", ".join(node.host for node in ended.left)
        raise LaunchError(
            f"{hosts}: may still run, and what runs there ends after its idle time. Try again when "
            f"they answer, or give them up: agentsim cluster down --name {staying.name} --forget"
        )


def _ask(staying: Staying) -> None:
    """Ask when runs are going on.

    Raises:
        UserError: they are, and nobody is there to ask, or says no.
    """
    from agentsim.errors import UserError
    from agentsim.launch.looking import runs_of, status

    runs = runs_of(finish(status(staying)))
    if not runs:
        return
    going = f"cluster {staying.name} has runs: {', '.join(sorted(runs))}"
    if not sys.stdin.isatty():
        raise UserError(f"{going}. To end them too: agentsim cluster down --yes")
    if not typer.confirm(f"{going}. End them too?", err=True):
        raise UserError("nothing was ended")
