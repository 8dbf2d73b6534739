"""`agentsim cluster status`: how nodes that stay are."""

from __future__ import annotations

import json as json_
import sys

import typer

from agentsim.cli.cluster.common import Json, Name, finish


def status(name: Name = None, json: Json = False) -> None:
    """Show hosts, runs, model servers and GPUs.

    The exit code is 1 when something is not healthy.

    A host that does not answer is not healthy, nor is a model server that has requests and gives
    no replies, nor a GPU with errors.
    """
    from agentsim.cli.cluster.tables import as_data, problems, status_text
    from agentsim.launch import registry
    from agentsim.launch.looking import status

    names = [name] if name is not None else registry.names()
    if not names and not json:
        print("there is no cluster; to start one: agentsim cluster up HOSTFILE")
    clusters = [registry.registry(name).read() for name in names]
    found = [(staying, finish(status(staying))) for staying in clusters]
    if json:
        print(json_.dumps([as_data(*one) for one in found], indent=2, ensure_ascii=False))
    else:
        sys.stdout.write("\n".join(status_text(*one) for one in found))
    if any(problems(hosts) for _, hosts in found):
        raise typer.Exit(1)
