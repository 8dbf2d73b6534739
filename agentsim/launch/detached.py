"""Starts nodes that outlive this program."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from agentsim import children, logs
from agentsim.errors import LaunchError
from agentsim.launch.base import listening
from agentsim.launch.local import end_of
from agentsim.launch.registry import Registry, StayingNode
from agentsim.launch.ssh import SshLauncher, SshNode
from agentsim.rpc.control import Listening, NodeConfig
from agentsim.rpc.lifeline import KEEP
from agentsim.rpc.sockets import private_folder
from agentsim.rpc.staying import Stay

_READY_TIMEOUT_S = 60.0
_LEAVE_S = 15.0


class Beginning(Protocol):
    """A node that has come up and still hangs on this program.

    Attributes:
        index: its place in the hostfile.
        node: as others will know it.
    """

    @property
    def index(self) -> int: ...

    @property
    def node(self) -> StayingNode: ...

    async def keep(self) -> None:
        """Let it go on by itself."""

    async def abandon(self) -> None:
        """End it. Harmless after `keep`: it goes on."""


@dataclass(frozen=True, slots=True)
class LocalBeginning:
    """A `Beginning` on this machine."""

    index: int
    node: StayingNode
    process: asyncio.subprocess.Process

    async def keep(self) -> None:
        await children.tell(self.process, KEEP)
        await self.abandon()

    async def abandon(self) -> None:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stdout.read(), _LEAVE_S)  # the node has let go of it, or ended


@dataclass(frozen=True, slots=True)
class FarBeginning:
    """A `Beginning` on another machine."""

    index: int
    node: StayingNode
    started: SshNode

    async def keep(self) -> None:
        await self.started.keep()

    async def abandon(self) -> None:
        await self.started.stop()


async def begin_by_ssh(launcher: SshLauncher, index: int, stay: Stay) -> FarBeginning:
    """Start a node on another machine.

    Args:
        launcher: of nodes that stay.
        index: of the host in the launcher's hostfile.
        stay: on which terms; what the launcher gives for this host.

    Raises:
        LaunchError: it did not come up.
    """
    started = await launcher.start(stay.host, index)
    folder = started.said.folder
    node = StayingNode(
        host=stay.host,
        target=started.target,
        pid=started.said.pid,
        log=f"{stay.host}:{folder}/logs/{Path(started.log).name}",
        folder=folder,
        local=False,
        slots=stay.slots,
    )
    return FarBeginning(index, node, started)


async def begin_locally(known: Registry, index: int, stay: Stay) -> LocalBeginning:
    """Start a node on this machine.

    Args:
        known: the cluster's; its logs go there.
        index: of the host in the hostfile.
        stay: on which terms.

    Raises:
        LaunchError: it did not come up; the message has the end of its log.
    """
    folder = private_folder()
    log = known.logs / f"node-{index}.log"
    config = NodeConfig(
        address=f"unix:{folder}/node.sock",
        folder=str(folder),
        log_dir=str(known.logs / f"node-{index}"),
        lease_s=stay.idle_s,
        log=logs.settings_for(log, stay.host),
        stay=stay,
    )
    try:
        process, ready = await _start(config, log)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    node = StayingNode(
        host=stay.host,
        target=config.address,
        pid=ready.pid,
        log=str(log),
        folder=str(folder),
        local=True,
        slots=stay.slots,
    )
    return LocalBeginning(index, node, process)


async def _start(config: NodeConfig, log: Path) -> tuple[asyncio.subprocess.Process, Listening]:
    """Start a node and wait until it listens."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "agentsim.node.detach", str(log)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    host = config.stay.host if config.stay else ""
    why = "did not start"
    try:
        await children.tell(process, msgspec.json.encode(config) + b"\n")
        ready = await asyncio.wait_for(listening(process.stdout), _READY_TIMEOUT_S)
    except TimeoutError:
        ready, why = None, f"was not ready within {_READY_TIMEOUT_S:.0f} s"
    finally:
        await process.wait()  # what it started lives on, and holds the pipes
    if ready is None:
        process.stdin.close()
        raise LaunchError(f"the node of {host} {why} (log: {log})" + end_of(str(log)))
    return process, ready
