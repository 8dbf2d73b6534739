"""Links: two-way, ordered, message by message. One protocol, three transports.

`StreamLink` carries envelopes over a Unix socket (the programs of one machine), `channel` over gRPC
(orchestrator and node of two), `MemoryLink` inside one process (tests).
"""

from __future__ import annotations

import asyncio
import struct
from typing import Protocol

from agentsim.rpc.envelope import Envelope, WireError, pack, unpack

# More than the largest value that travels (64 MiB) and what is sent with it.
MAX_MESSAGE_BYTES = 66 * 1024 * 1024
_LENGTH = struct.Struct("<I")
# How long what was sent last may take to leave.
_LAST_WORDS_S = 2.0


class Link(Protocol):
    """One end of a two-way connection."""

    async def send(self, envelope: Envelope) -> None:
        """Send, waiting while the other side is behind.

        Raises:
            WireError: the link is closed.
        """

    async def receive(self) -> Envelope | None:
        """The next envelope; None when the other side has closed.

        Raises:
            WireError: the link broke, or carried something that is no envelope.
        """

    async def close(self) -> None:
        """Close; what was sent still arrives, if the other side reads. Harmless when closed."""


class StreamLink:
    """A link over an asyncio byte stream: each message is its length (u32) and an envelope."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, envelope: Envelope) -> None:
        data = pack(envelope)
        if len(data) > MAX_MESSAGE_BYTES:
            raise WireError(f"a message of {len(data)} bytes is over {MAX_MESSAGE_BYTES}")
        try:
            self._writer.writelines((_LENGTH.pack(len(data)), data))
            await self._writer.drain()
        except (ConnectionError, RuntimeError, OSError) as error:
            raise WireError(f"the other side is gone: {error}") from error

    async def receive(self) -> Envelope | None:
        try:
            head = await self._reader.readexactly(_LENGTH.size)
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise WireError("the link was cut inside a message") from error
            return None
        except OSError:
            return None
        (length,) = _LENGTH.unpack(head)
        if length > MAX_MESSAGE_BYTES:
            raise WireError(f"a message of {length} bytes is over {MAX_MESSAGE_BYTES}")
        try:
            return unpack(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError) as error:
            raise WireError("the link was cut inside a message") from error

    async def close(self) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(_LAST_WORDS_S):
                # All who close wait for one future: one that is cancelled may not cancel it.
                await asyncio.shield(self._writer.wait_closed())
        except TimeoutError:  # the other side does not read
            self._writer.transport.abort()
        except OSError:
            pass


async def connect_unix(path: str) -> StreamLink:
    """A link to the Unix socket at `path`.

    Raises:
        WireError: nobody listens there.
    """
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=2**20)
    except OSError as error:
        raise WireError(f"cannot connect to {path}: {error}") from error
    return StreamLink(reader, writer)


class MemoryLink:
    """One end of a link inside one process. See `memory_pair`."""

    def __init__(
        self, inbox: asyncio.Queue[Envelope | None], outbox: asyncio.Queue[Envelope | None]
    ) -> None:
        self._inbox = inbox
        self._outbox = outbox
        self._closed = False

    async def send(self, envelope: Envelope) -> None:
        if self._closed:
            raise WireError("the link is closed")
        await self._outbox.put(unpack(pack(envelope)))

    async def receive(self) -> Envelope | None:
        return None if self._closed else await self._inbox.get()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._outbox.put_nowait(None)


def memory_pair() -> tuple[MemoryLink, MemoryLink]:
    """Two ends of one in-memory link."""
    one: asyncio.Queue[Envelope | None] = asyncio.Queue()
    other: asyncio.Queue[Envelope | None] = asyncio.Queue()
    return MemoryLink(one, other), MemoryLink(other, one)
