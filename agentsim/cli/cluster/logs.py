"""`agentsim cluster logs`: the log of a node that stays."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from agentsim.cli.cluster.common import Json, Name, finish, the_cluster

if TYPE_CHECKING:
    from agentsim.launch.control import Owner
    from agentsim.launch.registry import StayingNode

_LAST_BYTES = 16_384
_PAUSE_S = 0.5


def logs(
    host: Annotated[str, typer.Argument(help="As the hostfile calls it.", show_default=False)],
    name: Name = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on with what comes.")] = False,
    json: Json = False,
) -> None:
    """Print the end of a node's log.

    With --json as it is: a JSON object a line. The logs of a run's workers are in its directory.
    """
    from agentsim.launch.looking import node_of, owner_of

    staying = the_cluster(name)
    finish(_print(owner_of(staying), node_of(staying, host), follow=follow, json=json))


async def _print(owner: Owner, node: StayingNode, *, follow: bool, json: bool) -> None:
    from agentsim.launch.looking import read_log

    offset, rest = -_LAST_BYTES, b""
    while True:
        part = await read_log(owner, node, offset)
        lines = (rest + part.data).split(b"\n")
        rest = lines.pop()
        for line in lines:
            print(line.decode(errors="replace") if json else _readable(line), flush=True)
        offset = part.end
        if not part.data:
            if not follow:
                return
            await asyncio.sleep(_PAUSE_S)


def _readable(line: bytes) -> str:
    """A line for a person; what is no record stays as it is."""
    import msgspec

    from agentsim.logs import LogRecord
    from agentsim.report.words import visible

    try:
        record = msgspec.json.decode(line, type=LogRecord)
    except msgspec.DecodeError:
        return visible(line.decode(errors="replace"))
    run = f" [{record.run}]" if record.run else ""
    return visible(f"{record.time}{run} {record.text()}")
