"""Unix sockets between orchestrator and node of one machine: a connection for each stream.

gRPC's threads wake each other several times for each message, which is a third of what a small one
costs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import tempfile
import weakref
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.links import Link, StreamLink, connect_unix

_log = logging.getLogger(__name__)
_LIMIT_BYTES = 2**20
# Unix sockets have short paths on every system.
_LONGEST_PATH = 100


def private_folder() -> Path:
    """A new folder (0700) for sockets, in the usual place if their paths are short enough there."""
    folder = Path(tempfile.mkdtemp(prefix="agentsim-"))
    if len(str(folder)) + len("/workers.sock") > _LONGEST_PATH:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="agentsim-", dir="/tmp"))
    return folder


class Client:
    """The orchestrator's way to a node whose socket is at a path."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._links: weakref.WeakSet[StreamLink] = weakref.WeakSet()

    async def open(self, stream: str) -> Link:
        """See `streams.Client`."""
        link = await connect_unix(self._path)
        self._links.add(link)
        await link.send(Envelope(Kind.STREAM, NODE, ORCHESTRATOR, stream.encode()))
        return link

    async def close(self) -> None:
        """See `streams.Client`."""
        await asyncio.gather(*(link.close() for link in list(self._links)))


class Server:
    """A server that listens. Use `serve`."""

    port = 0

    def __init__(self, handlers: Mapping[str, Callable[[Link], Awaitable[None]]]) -> None:
        self._handlers = handlers
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.Task[None]] = set()

    async def listen(self, path: str) -> None:
        """Begin; raises OSError."""
        self._server = await asyncio.start_unix_server(self._serve, path, limit=_LIMIT_BYTES)

    async def stop(self, grace: float) -> None:
        """See `streams.Server`."""
        if self._server is not None:
            self._server.close()
        if self._streams:
            await asyncio.wait(self._streams, timeout=grace)
        for task in self._streams:
            task.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        link = StreamLink(reader, writer)
        try:
            first = await link.receive()
            if first is None:
                return
            name = first.body.decode(errors="replace") if first.kind is Kind.STREAM else ""
            if name in self._handlers:
                await self._handlers[name](link)
            else:
                _log.warning("refused a connection for no stream that is served")
        except WireError as error:
            _log.info("a connection broke: %s", error)
        except asyncio.CancelledError:  # by `stop`, and a task of a server is awaited by nobody
            pass
        finally:
            self._streams.discard(task)
            with contextlib.suppress(WireError):
                await link.close()


async def serve(path: str, handlers: Mapping[str, Callable[[Link], Awaitable[None]]]) -> Server:
    """See `streams.serve`."""
    server = Server(handlers)
    try:
        await server.listen(path)
    except OSError as error:
        raise WireError(f"cannot listen on {path}: {error}") from error
    return server
