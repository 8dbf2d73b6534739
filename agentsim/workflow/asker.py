"""Sends the model requests of the user's own thread to nodes, and to others when one is lost."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Sequence
from typing import Protocol

from agentsim.errors import PeerLost
from agentsim.rpc.messages import Completion, Request

_Key = tuple[int, int, int]


class Nodes(Protocol):
    """What is needed of the connected nodes."""

    def alive(self) -> list[int]:
        """Places of those that are not lost."""

    async def ask(self, node: int, requests: Sequence[Request]) -> None:
        """Send requests to one of them."""


class Asker:
    """Asks the nodes in turn. All of it is called on the loop.

    Args:
        nodes: that serve the program's model.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._turns = itertools.count()
        # What was asked and not answered, and where.
        self._asked: dict[_Key, tuple[int, Request]] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def ask(self, requests: Sequence[Request]) -> None:
        """Send requests to the next node; to none when all are lost, which ends the run."""
        alive = self._nodes.alive()
        if not alive:
            return
        node = alive[next(self._turns) % len(alive)]
        for request in requests:
            self._asked[_key(request)] = node, request
        task = asyncio.ensure_future(self._send(node, requests))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def answered(self, completions: Sequence[Completion]) -> None:
        """Completions have arrived."""
        for completion in completions:
            self._asked.pop(_key(completion), None)

    def lost(self) -> None:
        """A node was lost: ask another one what it has not answered."""
        alive = set(self._nodes.alive())
        again = [request for node, request in self._asked.values() if node not in alive]
        if again:
            self.ask(again)

    async def _send(self, node: int, requests: Sequence[Request]) -> None:
        with contextlib.suppress(PeerLost):  # whoever reads from the nodes tells of it
            await self._nodes.ask(node, requests)


def _key(message: Request | Completion) -> _Key:
    return message.session, message.agent, message.step
