"""What a launcher does: start a node on each host and say where it listens."""

from __future__ import annotations

from typing import Protocol


class NodeHandle(Protocol):
    """A node that was started.

    Attributes:
        host: its name in the hostfile.
        target: its gRPC target.
        log: path of its log.
    """

    @property
    def host(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def log(self) -> str: ...

    async def wait(self) -> int:
        """Exit status of the node's program, once it has ended."""

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
