"""Commands to nodes that stay."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec

from agentsim import errors
from agentsim.errors import AgentsimError, LaunchError
from agentsim.launch.registry import StayingNode
from agentsim.rpc.certificates import Identity
from agentsim.rpc.channel import Client
from agentsim.rpc.codec import encode
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.staying import CONTROL, Answer, Command, Refused, read_answer

A = TypeVar("A", bound=Answer)
ANSWER_S = 10.0
"""How long a node may take to answer most commands."""


async def tell(
    node: StayingNode,
    command: Command,
    answer: type[A],
    timeout_s: float,
    identity: Identity | None = None,
) -> A:
    """Give a node a command and wait for its answer.

    Args:
        answer: the type that an answer has when all is well.
        identity: what the node is shown; None on a Unix socket.

    Raises:
        LaunchError: the node does not answer.
        AgentsimError: it refused, for the reason that it gave.
    """
    client = Client(node.target, identity)
    try:
        link = client.open(CONTROL)
        async with asyncio.timeout(timeout_s):
            await link.send(Envelope(Kind.COMMAND, NODE, ORCHESTRATOR, encode(command)))
            envelope = await link.receive()
        if envelope is None:
            raise WireError("it closed the connection")
        found = read_answer(envelope.body)
    except (TimeoutError, WireError, msgspec.DecodeError) as error:
        why = f"nothing came within {timeout_s:g} s" if isinstance(error, TimeoutError) else error
        raise NoAnswer(
            f"the node of {node.host} does not answer ({why}). It may have ended after its idle "
            f"time, or its machine is down; its log: {node.log}"
        ) from None
    finally:
        await client.close()
    if isinstance(found, Refused):
        kind = getattr(errors, found.kind, LaunchError)
        raise kind(found.message) if issubclass(kind, AgentsimError) else LaunchError(found.message)
    assert isinstance(found, answer)
    return found


class NoAnswer(LaunchError):
    """A node does not answer."""
