"""gRPC between orchestrator and node: one bidirectional stream for data, one for the pulse.

They are two streams because a data stream that is behind must not make a healthy node look dead.
Messages are bytes (`envelope.pack`), so there is no generated code.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from typing import Any

# Children are started by exec at once, so gRPC's fork handlers do nothing but write to the log.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc

from agentsim.rpc.envelope import Envelope, WireError, pack, unpack
from agentsim.rpc.links import MAX_MESSAGE_BYTES, Link

_SERVICE = "agentsim.Node"

_OPTIONS = [
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A peer that is cut off silently is noticed by both, keepalive and ping timeout: keepalive
    # alone took a minute where this takes two seconds.
    ("grpc.keepalive_time_ms", 1000),
    ("grpc.keepalive_timeout_ms", 5000),
    ("grpc.http2.ping_timeout_ms", 5000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 500),
    ("grpc.http2.max_ping_strikes", 0),
]


class _CallLink:
    """A link over one side of a bidirectional call (a client call or a servicer context)."""

    def __init__(self, call: Any, *, finish: Callable[[], Awaitable[None]]) -> None:
        self._call = call
        self._finish = finish
        # gRPC takes one write at a time.
        self._writing = asyncio.Lock()

    async def send(self, envelope: Envelope) -> None:
        try:
            async with self._writing:
                await self._call.write(pack(envelope))
        except Exception as error:
            raise _translated(error) from error

    async def receive(self) -> Envelope | None:
        try:
            data = await self._call.read()
        except Exception as error:
            raise _translated(error) from error
        if data is grpc.aio.EOF or data is None:
            return None
        return unpack(data)

    async def close(self) -> None:
        with contextlib.suppress(grpc.RpcError, RuntimeError):
            await self._finish()


def _translated(error: Exception) -> WireError:
    """gRPC raises its own errors, and plain asyncio ones for a call that has ended."""
    if isinstance(error, grpc.aio.AioRpcError):
        return WireError(f"{error.code().name}: {error.details()}")
    return WireError(f"the call has ended: {error!r}")


class Client:
    """The orchestrator's connection to one node.

    Args:
        target: gRPC target, e.g. `unix:/path` or `host:port`.
        credentials: for mutual TLS; None only over a Unix socket in a private folder.
    """

    def __init__(self, target: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        self._channel = (
            grpc.aio.insecure_channel(target, options=_OPTIONS)
            if credentials is None
            else grpc.aio.secure_channel(target, credentials, options=_OPTIONS)
        )

    def open(self, stream: str) -> Link:
        """Open the stream DATA or PULSE."""
        call = self._channel.stream_stream(f"/{_SERVICE}/{stream}")()

        async def finish() -> None:
            call.cancel()

        return _CallLink(call, finish=finish)

    async def close(self) -> None:
        """Close the connection and its streams."""
        await self._channel.close()


async def serve(
    address: str,
    handlers: dict[str, Callable[[Link], Awaitable[None]]],
    credentials: grpc.ServerCredentials | None = None,
) -> grpc.aio.Server:
    """Start a server whose streams are served by `handlers`, by stream name.

    A stream ends when its handler returns.
    """
    server = grpc.aio.server(options=_OPTIONS)

    def method(handler: Callable[[Link], Awaitable[None]]) -> grpc.RpcMethodHandler:
        async def behave(_requests: Any, context: Any) -> None:
            async def finish() -> None:
                return None

            await handler(_CallLink(context, finish=finish))

        return grpc.stream_stream_rpc_method_handler(behave)

    methods = {name: method(handler) for name, handler in handlers.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, methods),))
    if credentials is None:
        server.add_insecure_port(address)
    else:
        server.add_secure_port(address, credentials)
    await server.start()
    return server
