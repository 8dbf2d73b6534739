"""Runs on nodes that stay: nothing is started, and what is stopped is the run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agentsim.config.hostfile import Hostfile
from agentsim.errors import AgentsimError, LaunchError
from agentsim.launch.control import ANSWER_S, NoAnswer, tell
from agentsim.launch.local import LocalLauncher, LocalNode
from agentsim.launch.make import MakeLauncher, make
from agentsim.launch.registry import StayingNode
from agentsim.rpc.certificates import Identity
from agentsim.rpc.staying import Carried, EndRun, Opened, OpenRun, Stay
from agentsim.version import __version__

_log = logging.getLogger(__name__)
# A node of our own goes with us; the time between two cells of a sweep is no reason to end.
_HELD_IDLE_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class AttachedNode:
    """A run's place at a node that stays."""

    host: str
    target: str
    log: str
    run_id: str
    node: StayingNode
    identity: Identity | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> int:
        """Until the run has ended there; the node's own end cannot be seen from here."""
        await self.gone.wait()
        return 0

    async def stop(self, grace_s: float = 5.0) -> None:
        """End the run at the node; the node stays."""
        if self.gone.is_set():
            return
        try:
            await tell(self.node, EndRun(self.run_id), Carried, grace_s + ANSWER_S, self.identity)
        except AgentsimError as error:
            # Its lease ends it.
            _log.warning("the run could not be ended at %s: %s", self.host, error)
        self.gone.set()


@dataclass(frozen=True, slots=True)
class AttachLauncher:
    """Opens a run at nodes that run already.

    Attributes:
        nodes: in the order of the run's hostfile.
        log_dir: the run's; nodes on this machine have their workers log there.
        api_keys: of model endpoints, by the name of their variable.
        cluster: its name; empty for nodes that this process holds.
        identity: what nodes on other machines are shown.
        lease_s: how long the run lives at a node without its orchestrator.
    """

    nodes: Sequence[StayingNode]
    log_dir: Path
    api_keys: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""
    identity: Identity | None = None
    lease_s: float = 60.0

    async def start(self, host: str, index: int) -> AttachedNode:
        """See `Launcher.start`."""
        if index >= len(self.nodes) or self.nodes[index].host != host:
            raise LaunchError(f"{host} is not host {index} of the cluster {self.cluster}")
        node = self.nodes[index]
        log_dir = self.log_dir.absolute()
        command = OpenRun(
            run_id=secrets.token_hex(8),
            name=log_dir.parent.name,
            version=__version__,
            directory=str(log_dir.parent),
            log_dir=str(log_dir) if node.local else "",
            api_keys=dict(self.api_keys),
            lease_s=self.lease_s,
        )
        try:
            opened = await tell(node, command, Opened, ANSWER_S, self._identity_for(node))
        except NoAnswer as error:
            if not self.cluster:
                raise
            raise LaunchError(
                f"{error}. To see all hosts: agentsim cluster status --name {self.cluster}"
            ) from None
        log = node.log if node.local else opened.log_dir
        identity = self._identity_for(node)
        return AttachedNode(host, node.target, log, command.run_id, node, identity)

    def _identity_for(self, node: StayingNode) -> Identity | None:
        return None if node.local else self.identity


@asynccontextmanager
async def held_locally(
    hostfile: Hostfile, log_dir: Path, api_keys: Mapping[str, str]
) -> AsyncIterator[MakeLauncher]:
    """Nodes of this process's own that stay over several runs, so that models stay loaded.

    They end with this process, whatever ends it. For a hostfile of other machines, nodes are
    started anew by each run.

    Args:
        hostfile: of all the runs.
        log_dir: where nodes and model servers log; must exist.
        api_keys: of model endpoints, by the name of their variable.

    Yields:
        What makes the launcher of a run.

    Raises:
        LaunchError: a node did not come up.
    """
    if str(hostfile.launcher) != "local":
        yield partial(make, hostfile)
        return
    stay = Stay(cluster="", host="", slots=None, idle_s=_HELD_IDLE_S)
    launcher = LocalLauncher(log_dir, api_keys, stay)
    started: list[LocalNode] = []

    async def start(host: str, index: int) -> None:
        started.append(await launcher.start(host, index))

    try:
        try:
            async with asyncio.TaskGroup() as group:
                for index, host in enumerate(hostfile.hosts):
                    group.create_task(start(host.address, index))
        except ExceptionGroup as several:
            raise several.exceptions[0] from None
        nodes = [staying(node) for node in sorted(started, key=lambda node: node.index)]
        yield lambda log_dir, api_keys: AttachLauncher(nodes, log_dir, api_keys)
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(asyncio.gather(*(node.stop() for node in started)))


def staying(node: LocalNode, *, slots: int | None = None) -> StayingNode:
    """A node on this machine, as one that stays."""
    return StayingNode(
        host=node.host,
        target=node.target,
        pid=node.process.pid,
        log=node.log,
        folder=str(node.folder),
        local=True,
        slots=slots,
    )
