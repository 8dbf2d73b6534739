"""gRPC between orchestrator and node: one bidirectional stream for data, one for the pulse.

They are two streams because a data stream that is behind must not make a healthy node look dead.
Messages are bytes (`envelope.pack`), so there is no generated code.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc

from agentsim.rpc.envelope import Envelope, WireError, pack, unpack
from agentsim.rpc.identity import NODE_NAME, ORCHESTRATOR_NAME, Identity
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
    # Hosts of a run are reached directly, whatever the proxy of a cluster is.
    ("grpc.enable_http_proxy", 0),
    # Streams are joined again by `connection`, not by gRPC: nothing is buffered for it twice.
    ("grpc.enable_retries", 0),
    # Each client has connections of its own, and tries again soon: a run waits for it.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 2000),
    ("grpc.max_reconnect_backoff_ms", 1000),
]
_SERVER_OPTIONS = [
    *_OPTIONS,
    # Linux would let two nodes of one user share a port, and deal connections out among them.
    ("grpc.so_reuseport", 0),
    # Whoever connects and says nothing is let go.
    ("grpc.server_handshake_timeout_ms", 10_000),
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
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            raise WireError("the call was cancelled") from None
        except Exception as error:
            raise _translated(error) from error

    async def receive(self) -> Envelope | None:
        try:
            data = await self._call.read()
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            raise WireError("the call was cancelled") from None
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
        return WireError(_in_short(str(error.details())) or error.code().name)
    return WireError(f"the call has ended: {error!r}")


def _in_short(details: str) -> str:
    """What gRPC says, without how it came to say it: users are shown it."""
    _, failed, rest = details.partition("last error: ")
    if failed:
        return f"cannot connect: {rest.removesuffix(': FD Shutdown').rpartition(': ')[2]}"
    return details.partition("\n")[0]


def _is_cancelled() -> bool:
    """Whether this task is cancelled: gRPC raises the same when somebody else ended the call."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Client:
    """The orchestrator's way to one node: a connection for each stream.

    The pulse must not wait behind data that a slow link has not taken yet. See `streams.client`.
    """

    def __init__(self, target: str, identity: Identity | None = None) -> None:
        self._target = target
        self._identity = identity
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def open(self, stream: str) -> Link:
        """See `streams.Client`."""
        if stream not in self._channels:
            self._channels[stream] = self._connect()
        call = self._channels[stream].stream_stream(f"/{_SERVICE}/{stream}")()

        async def finish() -> None:
            call.cancel()

        return _CallLink(call, finish=finish)

    async def close(self) -> None:
        """See `streams.Client`."""
        channels, self._channels = self._channels, {}
        await asyncio.gather(*(channel.close() for channel in channels.values()))

    def _connect(self) -> grpc.aio.Channel:
        if self._identity is None:
            return grpc.aio.insecure_channel(self._target, options=_OPTIONS)
        # Nodes have one name, whatever their hosts are called.
        options = [*_OPTIONS, ("grpc.ssl_target_name_override", NODE_NAME)]
        credentials = self._identity.for_client()
        return grpc.aio.secure_channel(self._target, credentials, options=options)


class Server:
    """A server that listens. Use `serve`."""

    def __init__(self, server: grpc.aio.Server, port: int) -> None:
        self.port = port
        self._server = server

    async def stop(self, grace: float) -> None:
        """See `streams.Server`."""
        await self._server.stop(grace)


async def serve(
    address: str,
    handlers: Mapping[str, Callable[[Link], Awaitable[None]]],
    identity: Identity | None = None,
    *,
    renewed: Callable[[], Identity] | None = None,
) -> Server:
    """See `streams.serve`."""
    server = grpc.aio.server(options=_SERVER_OPTIONS)
    methods = {name: _method(handler, identity) for name, handler in handlers.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, methods),))
    credentials = None if identity is None else identity.for_server(renewed)
    port = _bind(server, address, credentials)
    await server.start()
    return Server(server, port)


def _method(
    handler: Callable[[Link], Awaitable[None]], identity: Identity | None
) -> grpc.RpcMethodHandler:
    async def behave(_requests: Any, context: Any) -> None:
        async def finish() -> None:
            return None

        if identity is not None and not _is_orchestrator(context):
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "only the orchestrator may")
        await handler(_CallLink(context, finish=finish))

    return grpc.stream_stream_rpc_method_handler(behave)


def _is_orchestrator(context: Any) -> bool:
    """Whether a certificate that the authority has signed is the orchestrator's."""
    names = context.auth_context().get("x509_subject_alternative_name", ())
    return list(names) == [ORCHESTRATOR_NAME.encode()]


def _bind(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None) -> int:
    """Listen, and say on which port."""
    failed = ""
    for candidate in _candidates(address):
        try:
            if credentials is None:
                port = server.add_insecure_port(candidate)
            else:
                port = server.add_secure_port(candidate, credentials)
        except RuntimeError as error:
            failed = str(error)
        else:
            return 0 if candidate.startswith("unix:") else int(port)
    raise WireError(f"cannot listen on {address}: {failed or 'no port is free'}")


def _candidates(address: str) -> list[str]:
    """The addresses of a range of ports, in order."""
    host, _, ports = address.rpartition(":")
    first, dash, last = ports.partition("-")
    if address.startswith("unix:") or not dash:
        return [address]
    return [f"{host}:{port}" for port in range(int(first), int(last) + 1)]
