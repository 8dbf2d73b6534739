"""Nodes that stay for as long as this process: for several runs, one after another."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from agentsim.config.hostfile import Hostfile
from agentsim.launch.attach import AttachLauncher
from agentsim.launch.local import LocalLauncher, LocalNode
from agentsim.launch.make import MakeLauncher, make
from agentsim.launch.registry import StayingNode
from agentsim.rpc.staying import Stay

# A node of our own goes with us; the time between two runs is no reason to end.
_HELD_IDLE_S = 7 * 86_400.0


@asynccontextmanager
async def held_locally(
    hostfile: Hostfile, log_dir: Path, api_keys: Mapping[str, str]
) -> AsyncIterator[MakeLauncher]:
    """Nodes of this process's own that stay over several runs, so that models stay loaded.

    They end with this process, whatever ends it. On other machines, each run starts nodes anew;
    the nodes of a cluster stay by themselves.

    Args:
        hostfile: of all the runs.
        log_dir: where nodes and model servers log; must exist.
        api_keys: of model endpoints, by the name of their variable.

    Yields:
        What makes the launcher of a run.

    Raises:
        LaunchError: a node did not come up.
    """
    if hostfile.launcher != "local" or hostfile.cluster is not None:
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
