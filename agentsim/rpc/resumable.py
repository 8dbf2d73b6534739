"""A link that outlives its connections: what a cut has lost is sent again, once and in order.

Messages are numbered by counting. A connection keeps order, so no number travels with a message:
who joins says how many it has received, and the other side goes on from there. What has not been
acknowledged is kept, up to a bound in bytes; then senders wait. A message is acknowledged when it
is taken by `receive`, in batches, so the same bound holds for what waits on the receiving side.

Each side reads on whatever happens, so acknowledgements never wait behind data, and two sides that
both send much cannot block each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections import deque
from collections.abc import Callable

from agentsim.rpc.envelope import NODE, Envelope, Kind, UnreadableError, WireError
from agentsim.rpc.links import MAX_MESSAGE_BYTES, Link

BOUND_BYTES = 32 * 1024 * 1024
_ACKNOWLEDGE_S = 0.2
# What a message costs beside its body: two objects, and a place in a queue.
_OVERHEAD_BYTES = 200
_COUNT = struct.Struct("<Q")


class Resumable:
    """One end of a two-way link that goes on over one connection after another. A `Link`.

    One task may receive, any number may send.

    Args:
        bound_bytes: most bytes that are sent and not acknowledged; a larger message goes alone.
        acknowledge_s: longest time until what was taken is acknowledged.
        on_arrival: is shown each message when it arrives, before those that wait to be taken.
    """

    def __init__(
        self,
        *,
        bound_bytes: int = BOUND_BYTES,
        acknowledge_s: float = _ACKNOWLEDGE_S,
        on_arrival: Callable[[Envelope], None] | None = None,
    ) -> None:
        self._bound_bytes = bound_bytes
        self._acknowledge_s = acknowledge_s
        self._on_arrival = on_arrival
        # What was sent and is not acknowledged; the number of the first, and bytes of all.
        self._kept: deque[Envelope] = deque()
        self._first = 0
        self._kept_bytes = 0
        self._turn = asyncio.Lock()
        self._room: asyncio.Future[None] | None = None
        self._more: asyncio.Future[None] | None = None
        # What has arrived and was not taken.
        self._inbox: deque[Envelope] = deque()
        self._received = 0
        self._arrived: asyncio.Future[None] | None = None
        # What was taken, and what of it is not acknowledged.
        self._taken = 0
        self._taken_bytes = 0
        self._due = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._broken: asyncio.Future[str] | None = None
        self._idle = asyncio.Event()
        self._idle.set()
        self._ended: str | None = None

    @property
    def received(self) -> int:
        """Messages that have arrived here. Stands still while there is no connection."""
        return self._received

    @property
    def kept_bytes(self) -> int:
        """Bytes that are kept because they are not acknowledged."""
        return self._kept_bytes

    async def send(self, envelope: Envelope, *, urgent: bool = False) -> None:
        """Send over this connection or a later one; waits while too much is not acknowledged.

        Args:
            urgent: do not wait; for the few messages that end what others wait for.

        Raises:
            WireError: the link has ended, or the message is too large for any connection.
        """
        size = len(envelope.body) + _OVERHEAD_BYTES
        if size > MAX_MESSAGE_BYTES:
            raise WireError(f"a message of {size} bytes is over {MAX_MESSAGE_BYTES}")
        if not urgent and (self._turn.locked() or not self._fits(size)):
            async with self._turn:
                while not self._fits(size):
                    self._room = asyncio.get_running_loop().create_future()
                    await self._room
                self._keep(envelope, size)
        else:
            self._keep(envelope, size)

    def _fits(self, size: int) -> bool:
        free = self._kept_bytes + size <= self._bound_bytes
        return free or not self._kept or self._ended is not None

    def _keep(self, envelope: Envelope, size: int) -> None:
        if self._ended is not None:
            raise WireError(self._ended)
        self._kept.append(envelope)
        self._kept_bytes += size
        _wake(self._more)

    async def receive(self) -> Envelope:
        """The next message, over whatever connection it comes.

        Raises:
            WireError: the link has ended.
        """
        while not self._inbox:
            if self._ended is not None:
                raise WireError(self._ended)
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        envelope = self._inbox.popleft()
        self._taken += 1
        self._taken_bytes += len(envelope.body) + _OVERHEAD_BYTES
        if self._taken_bytes * 4 > self._bound_bytes:
            self._due.set()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._acknowledge_s, self._due.set)
        return envelope

    async def close(self) -> None:
        """End the link for good, on this side. Harmless when it has ended."""
        self.end("the link is closed")
        await self.detach()

    def end(self, reason: str) -> None:
        """Nothing more is sent; `receive` gives what has arrived and then raises."""
        if self._ended is None:
            self._ended = reason
            self._kept.clear()
            self._kept_bytes = 0
            _wake(self._room)
            _wake(self._arrived)
            self._break(reason)

    async def detach(self) -> None:
        """Leave the connection, and wait until nothing arrives over it any more."""
        self._break("another connection took its place")
        await self._idle.wait()

    async def run(self, link: Link, received: int) -> str:
        """Go on over a connection until it breaks, and say why it did.

        Both sides must have joined: each has read what the other one has received, and has left
        its last connection (`detach`) before it said so.

        Args:
            link: the connection; closed in the end.
            received: messages that the other side has.

        Raises:
            WireError: the link has ended, or the other side has what was never sent.
        """
        if self._ended is not None or not self._idle.is_set():
            raise WireError(self._ended or "there is a connection already")
        if not self._first <= received <= self._first + len(self._kept):
            sent = self._first + len(self._kept)
            raise WireError(f"the other side has {received} messages, of {self._first} to {sent}")
        self._idle.clear()
        broken: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._broken = broken
        works = (self._read(link), self._acknowledge(link), self._write(link, received))
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            return await broken
        finally:
            self._broken = None
            for task in tasks:
                task.cancel()
            try:
                await asyncio.gather(*tasks, return_exceptions=True)
            finally:  # also when it is cancelled here: who detaches waits for it
                self._idle.set()
                await link.close()

    def _break(self, reason: str) -> None:
        if self._broken is not None and not self._broken.done():
            self._broken.set_result(reason)

    async def _read(self, link: Link) -> None:
        try:
            while (envelope := await link.receive()) is not None:
                if envelope.kind is Kind.ACK:
                    self._forget(envelope)
                    continue
                self._received += 1
                self._inbox.append(envelope)
                _wake(self._arrived)
                if self._on_arrival is not None:
                    self._on_arrival(envelope)
            self._break("the other side closed the connection")
        except UnreadableError as error:
            self.end(str(error))  # it would come again with each connection
        except WireError as error:
            self._break(str(error))

    def _forget(self, acknowledgement: Envelope) -> None:
        """Drop what the other side has taken."""
        try:
            (taken,) = _COUNT.unpack(acknowledgement.body)
        except struct.error as error:
            raise UnreadableError(f"an acknowledgement cannot be read: {error}") from error
        if taken > self._first + len(self._kept):
            raise UnreadableError(f"{taken} messages are acknowledged, more than were sent")
        while self._first < taken:
            self._kept_bytes -= len(self._kept.popleft().body) + _OVERHEAD_BYTES
            self._first += 1
        _wake(self._room)

    async def _acknowledge(self, link: Link) -> None:
        with contextlib.suppress(WireError):
            while True:
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
                self._due.clear()
                self._taken_bytes = 0
                # Once with each connection, since the last one may have lost it.
                await link.send(Envelope(Kind.ACK, NODE, NODE, _COUNT.pack(self._taken)))
                await self._due.wait()

    async def _write(self, link: Link, number: int) -> None:
        """Send what the other side has not, from a number on, and what comes after it."""
        try:
            while True:
                while number < self._first + len(self._kept):
                    await link.send(self._kept[number - self._first])
                    number += 1
                self._more = asyncio.get_running_loop().create_future()
                await self._more
        except WireError as error:
            self._break(str(error))


def _wake(waiting: asyncio.Future[None] | None) -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
