"""`agentsim cluster agents`: where agents live."""

from __future__ import annotations

import json as json_
import sys

from agentsim.cli.cluster.common import Json, Name, finish, the_cluster


def agents(name: Name = None, json: Json = False) -> None:
    """List workers with their agents, CPU and memory."""
    from agentsim.cli.cluster.tables import agents_data, agents_text
    from agentsim.launch.looking import status

    staying = the_cluster(name)
    hosts = finish(status(staying))
    if json:
        print(json_.dumps(agents_data(hosts), indent=2, ensure_ascii=False))
    else:
        sys.stdout.write(agents_text(hosts))
