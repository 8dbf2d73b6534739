"""Tells workers who they host."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from agentsim.plan import RunPlan, Shard
from agentsim.population import read_personas
from agentsim.rpc.control import Enrol
from agentsim.rpc.envelope import Envelope, Kind

# Backgrounds of this many agents travel in one message: about 2 MB of text.
_AGENTS_A_MESSAGE = 5_000


class Workers(Protocol):
    """The way to the workers, and from them."""

    async def send(self, worker: int, kind: Kind, message: object) -> None:
        """Send a message to a worker."""

    async def receive(self) -> Envelope:
        """The next message of any worker."""


async def enrol(workers: Workers, plan: RunPlan, session: int, personas: Path | None) -> None:
    """Enrol the agents of one session at their workers.

    Args:
        personas: file of the persona texts; None when no prompt shows them.
    """
    for shard in plan.shards:
        if personas is None:
            message = Enrol(session, shard.first, shard.count)
            await workers.send(shard.worker, Kind.ENROL, message)
            continue
        for part in _parts(shard):
            table = read_personas(personas, session=session, first=part.first, count=part.count)
            backgrounds = [str(text) for text in table.column("background").to_pylist()]
            message = Enrol(session, part.first, part.count, backgrounds)
            await workers.send(shard.worker, Kind.ENROL, message)


def _parts(shard: Shard) -> list[Shard]:
    end = shard.first + shard.count
    return [
        Shard(shard.worker, first, min(_AGENTS_A_MESSAGE, end - first))
        for first in range(shard.first, end, _AGENTS_A_MESSAGE)
    ]
