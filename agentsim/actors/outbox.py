"""Messages of one breath leave together."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence

from agentsim.actors.messages import ActorMessage

Post = Callable[[int, Sequence[ActorMessage]], None]
"""Sends messages to a worker or the centre, in order; called on the loop."""


class Outbox:
    """Gathers messages until the loop comes round; of the loop's thread alone.

    Attributes:
        lost: workers that are gone, to whom nothing is sent, and why.
    """

    def __init__(self, post: Post, loop: asyncio.AbstractEventLoop) -> None:
        self.lost: dict[int, str] = {}
        self._post = post
        self._loop = loop
        self._messages: dict[int, list[ActorMessage]] = defaultdict(list)
        self._scheduled = False

    def send(self, to: int, message: ActorMessage) -> None:
        """Send a message with the next breath."""
        self._messages[to].append(message)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send what has gathered."""
        self._scheduled = False
        gathered, self._messages = self._messages, defaultdict(list)
        for to, messages in gathered.items():
            if to not in self.lost:
                self._post(to, messages)
