"""Runs on nodes that stay: nothing is started, and what is stopped is the run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from agentsim.config.hostfile import Host, Hostfile
from agentsim.errors import AgentsimError, LaunchError
from agentsim.launch.base import UNKNOWN_STATUS
from agentsim.launch.control import ANSWER_S, NoAnswer, Owner
from agentsim.launch.registry import StayingNode, registry
from agentsim.rpc.identity import Identity
from agentsim.rpc.staying import Carried, EndRun, Here, Logs, Opened, OpenRun, TakeLogs
from agentsim.version import __version__

_log = logging.getLogger(__name__)
# How often a node on this machine is looked after.
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class AttachedNode:
    """A run's place at a node that stays."""

    host: str
    target: str
    log: str
    run_id: str
    node: StayingNode
    owner: Owner
    log_dir: Path
    index: int
    identity: Identity | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> int:
        """Until the run has ended there, or the node, if it is on this machine."""
        while not self.gone.is_set():
            if self.node.local and not _lives(self.node.pid):
                return UNKNOWN_STATUS
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.gone.wait(), _LOOK_S)
        return 0

    async def stop(self, grace_s: float = 5.0) -> None:
        """End the run at the node; the node stays."""
        if self.gone.is_set():
            return
        try:
            await self.owner.tell(self.node, EndRun(self.run_id), Carried, grace_s + ANSWER_S)
            if not self.node.local:
                taken = await self.owner.tell(self.node, TakeLogs(self.run_id), Logs)
                await asyncio.to_thread(self._write, taken)
        except AgentsimError as error:
            # Its lease ends it.
            _log.warning("the run could not be ended at %s: %s", self.host, error)
        self.gone.set()

    def _write(self, taken: Logs) -> None:
        """Put a host's logs of the run beside those of other hosts."""
        for name, data in taken.files.items():
            # Workers are numbered over all hosts; other logs get the host's place.
            own = name.startswith("worker-")
            path = self.log_dir / (Path(name).name if own else f"node-{self.index}-{name}")
            try:
                path.write_bytes(data)
            except OSError as error:
                _log.warning("%s: cannot be written: %s", path, error.strerror)


@dataclass(frozen=True, slots=True)
class AttachLauncher:
    """Opens a run at nodes that run already.

    Attributes:
        nodes: of the cluster; a run may use some of them.
        log_dir: the run's; nodes on this machine have their workers log there.
        api_keys: of model endpoints, by the name of their variable.
        cluster: its name; empty for nodes that this process holds.
        owner: gives them commands.
        lease_s: how long the run lives at a node without its orchestrator.
    """

    nodes: Sequence[StayingNode]
    log_dir: Path
    api_keys: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""
    owner: Owner = field(default_factory=Owner)
    lease_s: float = 60.0

    async def start(self, host: str, index: int) -> AttachedNode:
        """See `Launcher.start`."""
        node = self._node(host, index)
        log_dir = self.log_dir.absolute()
        # A run is called like its directory; what has none, like the folder of its logs.
        directory = log_dir.parent if log_dir.name == "logs" else log_dir
        command = OpenRun(
            run_id=secrets.token_hex(8),
            name=directory.name,
            version=__version__,
            directory=str(directory),
            log_dir=str(log_dir) if node.local else "",
            folder=str(Path.cwd()) if node.local else "",
            api_keys=dict(self.api_keys),
            lease_s=self.lease_s,
        )
        try:
            opened = await self.owner.tell(node, command, Opened)
            await self.owner.renew(node)
        except NoAnswer as error:
            if not self.cluster:
                raise
            raise LaunchError(
                f"{error}; to see all hosts: agentsim cluster status --name {self.cluster}"
            ) from None
        return AttachedNode(
            host=host,
            target=node.target,
            log=node.log if node.local else f"{host}:{opened.log_dir}",
            run_id=command.run_id,
            node=node,
            owner=self.owner,
            log_dir=log_dir,
            index=index,
            identity=self.owner.shown_to(node),
        )

    def _node(self, host: str, index: int) -> StayingNode:
        """The node of a host: the one at this place, where several have its name."""
        named = [node for node in self.nodes if node.host == host]
        if not named:
            there = ", ".join(node.host for node in self.nodes)
            raise LaunchError(f"cluster {self.cluster} has no host {host}; it has: {there}")
        at_place = [node for node in self.nodes[index : index + 1] if node.host == host]
        return (at_place or named)[0]


def attach_to(cluster: str, log_dir: Path, api_keys: Mapping[str, str]) -> AttachLauncher:
    """The launcher of a run on a cluster that stays.

    Args:
        cluster: its name.
        log_dir: of the run.
        api_keys: of model endpoints, by the name of their variable.

    Raises:
        UserError: there is no such cluster.
    """
    known = registry(cluster)
    owner = Owner(known.authority())
    return AttachLauncher(known.read().nodes, log_dir, api_keys, cluster, owner)


async def answering(hostfile: Hostfile, notice: Callable[[str], None]) -> Hostfile:
    """The hostfile with the hosts of its cluster that answer.

    Args:
        hostfile: it names a cluster.
        notice: is told of hosts that are left out.

    Raises:
        UserError: there is no such cluster.
        LaunchError: too few answer.
    """
    assert hostfile.cluster is not None
    known = registry(hostfile.cluster)
    owner, nodes = Owner(known.authority()), {node.host: node for node in known.read().nodes}

    async def problem(host: Host) -> str:
        node = nodes.get(host.address)
        if node is None:
            return f"cluster {hostfile.cluster} has no host {host.address}"
        try:
            await owner.tell(node, Here(), Carried)
        except AgentsimError as error:
            return str(error)
        return ""

    problems = await asyncio.gather(*map(problem, hostfile.hosts))
    bad = [what for what in problems if what]
    good = [host for host, what in zip(hostfile.hosts, problems, strict=True) if not what]
    if not bad:
        return hostfile
    if len(good) < (hostfile.minimum_hosts or len(hostfile.hosts)):
        raise LaunchError(
            "\n".join([*bad, f"to see all hosts: agentsim cluster status --name {known.name}"])
        )
    for what in bad:
        notice(f"goes without a host: {what}")
    return hostfile.model_copy(update={"hosts": good})


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
