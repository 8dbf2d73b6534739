"""A TCP proxy that a test cuts, resets, holds back or slows down."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Self

_RESET = struct.pack("ii", 1, 0)  # linger on, for 0 s: close sends a reset
_PIECE = 65536


class CutProxy:
    """Passes bytes on between 127.0.0.1 and a gRPC target. Use `async with`.

    Args:
        target: `unix:/path` or `host:port`.

    Attributes:
        target: where clients of the proxy connect.
        connections: how many there were.
        delay_s: that each piece waits on its way.
    """

    def __init__(self, target: str) -> None:
        self.target = ""
        self.connections = 0
        self.delay_s = 0.0
        self._to = target
        self._open = True
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.target = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """End all connections, and each new one at once, until `heal`."""
        self._open = False
        self._flows.set()
        for writer in self._writers:
            writer.transport.abort()

    def reset(self) -> None:
        """Reset all connections; new ones are served."""
        for writer in list(self._writers):
            plain = writer.get_extra_info("socket")
            if plain.family == socket.AF_INET:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()

    def drop(self) -> None:
        """Pass nothing on, and say nothing, until `heal`."""
        self._flows.clear()

    def heal(self) -> None:
        """Be a good proxy again."""
        self._open = True
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        writers = [writer]
        try:
            if not self._open:
                return
            self.connections += 1
            there, back = await self._connect()
            writers.append(back)
            self._writers.add(back)
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        except OSError:
            pass
        finally:
            self._tasks.discard(task)
            for each in writers:
                self._writers.discard(each)
                each.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        kind, _, path = self._to.partition(":")
        if kind == "unix":
            return await asyncio.open_unix_connection(path)
        return await asyncio.open_connection(kind, int(path))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                await self._flows.wait()
                piece = await reader.read(_PIECE)
                await self._flows.wait()
                if not piece:
                    break
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(piece)
                await writer.drain()
        writer.transport.abort()
