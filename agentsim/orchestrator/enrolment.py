"""Tells workers who they host, and in which groups they play."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from agentsim.errors import PeerLost
from agentsim.games.guess_average import AttributeGroups, GuessAverageSpec, by_category, by_count
from agentsim.plan import Shard
from agentsim.population import read_personas
from agentsim.results import Grouping
from agentsim.results.columns import to_numpy
from agentsim.rpc.control import Enrol
from agentsim.rpc.envelope import Envelope, Kind

# Backgrounds of this many agents travel in one message: about 2 MB of text.
_AGENTS_A_MESSAGE = 5_000


class Workers(Protocol):
    """The way to the workers, and from them."""

    async def send(self, worker: int, kind: Kind, message: object) -> None:
        """Send a message to a worker.

        Raises:
            PeerLost: its node is gone.
        """

    async def receive(self) -> Envelope:
        """The next message of any worker.

        Raises:
            PeerLost: workers are gone; told once of each.
        """

    async def spawn(self, node: int, workers: list[int]) -> None:
        """Start workers of these numbers on a node."""

    async def end(self, workers: list[int]) -> None:
        """End workers, whatever state they are in."""

    def alive(self) -> list[int]:
        """Nodes that are there."""

    def window(self, worker: int) -> int:
        """Requests that a worker may have in flight."""


class Surviving:
    """Workers of which some may be gone: what is for one of those is dropped, and `receive` tells
    of it.

    Args:
        workers: the way to them.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.receive = workers.receive
        self.alive = workers.alive
        self.window = workers.window

    async def send(self, worker: int, kind: Kind, message: object) -> None:
        """See `Workers.send`."""
        with contextlib.suppress(PeerLost):
            await self._workers.send(worker, kind, message)

    async def spawn(self, node: int, workers: list[int]) -> None:
        """See `Workers.spawn`."""
        with contextlib.suppress(PeerLost):
            await self._workers.spawn(node, workers)

    async def end(self, workers: list[int]) -> None:
        """See `Workers.end`."""
        with contextlib.suppress(PeerLost):
            await self._workers.end(workers)


def grouping(
    game: GuessAverageSpec, agents: int, *, seed: int, session: int, personas: Path
) -> Grouping:
    """The groups and markets of one session.

    Args:
        game: says what groups there are.
        agents: of the session.
        seed: the scenario's seed.
        session: from 1.
        personas: file of the population; read where groups are by an attribute.

    Raises:
        ResultsError: the file cannot be read.
    """
    if not isinstance(game.groups, AttributeGroups):
        return by_count(game, agents, seed=seed, session=session)
    name = game.groups.by
    column = read_personas(personas, session=session, columns=[name]).column(name)
    whole: Any = column.combine_chunks()
    categories: Any = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    codes = to_numpy(categories.indices).astype(np.int64)
    return by_category(game, categories.dictionary.to_pylist(), codes)


async def enrol(
    workers: Workers,
    shard: Shard,
    session: int,
    *,
    groups: Grouping,
    personas: Path | None,
) -> None:
    """Enrol the agents of one session that sit in one worker.

    Args:
        groups: of the session.
        personas: file of the persona texts; None when no prompt shows them.
    """
    for part in [shard] if personas is None else _parts(shard):
        backgrounds: list[str] = []
        if personas is not None:
            table = read_personas(personas, session=session, first=part.first, count=part.count)
            backgrounds = [str(text) for text in table.column("background").to_pylist()]
        whose = groups.record(session, slice(part.first, part.first + part.count))
        message = Enrol(session, part.first, part.count, backgrounds, whose)
        await workers.send(shard.worker, Kind.ENROL, message)


def _parts(shard: Shard) -> list[Shard]:
    end = shard.first + shard.count
    return [
        Shard(shard.worker, first, min(_AGENTS_A_MESSAGE, end - first))
        for first in range(shard.first, end, _AGENTS_A_MESSAGE)
    ]
