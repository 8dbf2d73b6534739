"""Named streams from an orchestrator to a node: over a Unix socket on one machine, else over gRPC.

A stream is a two-way link that begins where a client opens it and ends when its handler returns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from agentsim.rpc import sockets
from agentsim.rpc.identity import Identity
from agentsim.rpc.links import Link

Handlers = Mapping[str, Callable[[Link], Awaitable[None]]]
"""By the name of the stream that they serve."""


class Client(Protocol):
    """The orchestrator's way to one node."""

    async def open(self, stream: str) -> Link:
        """Open a stream.

        Raises:
            WireError: nobody listens there. gRPC may say so later, when something is sent.
        """

    async def close(self) -> None:
        """Close the connections and their streams."""


class Server(Protocol):
    """What listens.

    Attributes:
        port: the TCP port; 0 for a Unix socket.
    """

    @property
    def port(self) -> int: ...

    async def stop(self, grace: float) -> None:
        """Stop listening, and end streams after so many seconds."""


def client(target: str, identity: Identity | None = None) -> Client:
    """The way to a node.

    Args:
        target: path of a Unix socket, or for gRPC `host:port` or `unix:/path`.
        identity: the orchestrator's, for mutual TLS; None only over a Unix socket in a private
            folder.
    """
    if target.startswith("/"):
        return sockets.Client(target)
    from agentsim.rpc import channel  # a local run does without

    return channel.Client(target, identity)


async def serve(
    address: str,
    handlers: Handlers,
    identity: Identity | None = None,
    *,
    renewed: Callable[[], Identity] | None = None,
) -> Server:
    """Start a server.

    Args:
        address: path of a Unix socket; or for gRPC `unix:/path`, or `host:port`: of a range as in
            `host:7000-7099` the first free port is taken, of `host:0` any.
        handlers: of the streams.
        identity: the node's, for mutual TLS: only the orchestrator of the same authority is
            served. None only over a Unix socket in a private folder.
        renewed: gives the identity for each new connection, for servers that outlive one.

    Raises:
        WireError: nothing can listen there.
    """
    if address.startswith("/"):
        return await sockets.serve(address, handlers)
    from agentsim.rpc import channel

    return await channel.serve(address, handlers, identity, renewed=renewed)
