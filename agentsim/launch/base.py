"""What a launcher does: start a node on each host and say where it listens."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Protocol

import msgspec

from agentsim.rpc.control import Listening
from agentsim.rpc.identity import Identity

UNKNOWN_STATUS = 255
"""Exit status of a program that has ended nobody knows how: ssh does not tell signals."""
_MARK = b'{"ready":true'


class NodeHandle(Protocol):
    """A node that was started.

    Attributes:
        host: its name in the hostfile.
        target: where it is reached; see `streams.client`.
        log: path of its log.
        identity: what the orchestrator shows to it; None over a Unix socket.
        run_id: what the node calls the run; empty: whatever its streams say first.
    """

    @property
    def host(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def log(self) -> str: ...

    @property
    def identity(self) -> Identity | None: ...

    @property
    def run_id(self) -> str: ...

    async def wait(self) -> int:
        """Exit status of the node's program, once it is known to have ended.

        The orchestrator gives the node up when this returns. Where only the way to it has ended
        (an ssh client), it does not return: the node may live, and is waited for by its pulse.
        """

    async def stop(self, grace_s: float = 5.0) -> None:
        """Ask the node to end, and end it after the grace time. Harmless when it has ended."""


class Launcher(Protocol):
    """Starts nodes."""

    async def start(self, host: str, index: int) -> NodeHandle:
        """Start the node of one host.

        Args:
            host: its name in the hostfile.
            index: its place in the hostfile, from 0.

        Raises:
            LaunchError: it did not come up; the message has the end of its log.
        """


async def listening(lines: AsyncIterator[bytes]) -> Listening | None:
    """What a node says of itself once it listens; None when its output ends without that.

    What login shells write before it, or on the same line, is passed over.
    """
    async for line in lines:
        begin = line.find(_MARK)
        if begin >= 0:
            with contextlib.suppress(msgspec.DecodeError):
                return msgspec.json.decode(line[begin:], type=Listening)
    return None
