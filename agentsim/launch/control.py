"""Commands to nodes that stay."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from agentsim import errors
from agentsim.errors import AgentsimError, LaunchError
from agentsim.launch.registry import StayingNode
from agentsim.rpc.certificates import Authority
from agentsim.rpc.codec import encode
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.identity import Identity
from agentsim.rpc.staying import CONTROL, Answer, Carried, Command, Refused, Renew, read_answer
from agentsim.rpc.streams import client

A = TypeVar("A", bound=Answer)
ANSWER_S = 10.0
"""How long a node may take to answer most commands."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who may give commands to the nodes of a cluster.

    Attributes:
        authority: the cluster's; None when all of its nodes are on this machine.
    """

    authority: Authority | None = None

    def shown_to(self, node: StayingNode) -> Identity | None:
        """What a node is shown; nothing on a Unix socket, whose folder says who may."""
        if node.local or self.authority is None:
            return None
        return self.authority.issue("orchestrator")

    async def renew(self, node: StayingNode) -> None:
        """Give a node a new certificate.

        Raises:
            LaunchError: it does not answer.
        """
        if not node.local and self.authority is not None:
            await self.tell(node, Renew(self.authority.issue("node")), Carried)

    async def tell(
        self,
        node: StayingNode,
        command: Command,
        answer: type[A],
        timeout_s: float = ANSWER_S,
    ) -> A:
        """Give a node a command and wait for its answer.

        Args:
            answer: the type that an answer has when all is well.

        Raises:
            LaunchError: the node does not answer.
            AgentsimError: it refused, for the reason that it gave.
        """
        way = client(node.target, self.shown_to(node))
        try:
            async with asyncio.timeout(timeout_s):
                link = await way.open(CONTROL)
                await link.send(Envelope(Kind.COMMAND, NODE, ORCHESTRATOR, encode(command)))
                envelope = await link.receive()
            if envelope is None:
                raise WireError("it closed the connection")
            found = read_answer(envelope.body)
        except (TimeoutError, WireError, msgspec.DecodeError) as error:
            late = isinstance(error, TimeoutError)
            why = f"nothing came within {timeout_s:g} s" if late else str(error)
            raise NoAnswer(
                f"the node of {node.host} does not answer ({why}). It may have ended after its "
                f"idle time, or its machine is down; its log: {node.log}"
            ) from None
        finally:
            await way.close()
        if isinstance(found, Refused):
            kind = getattr(errors, found.kind, LaunchError)
            raise (kind if issubclass(kind, AgentsimError) else LaunchError)(found.message)
        assert isinstance(found, answer)
        return found


class NoAnswer(LaunchError):
    """A node does not answer."""
