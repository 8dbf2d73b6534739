"""Ends nodes that stay, whether they answer or not."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal

import psutil

from agentsim.errors import LaunchError
from agentsim.launch import far
from agentsim.launch.connection import Connection
from agentsim.launch.control import NoAnswer, Owner
from agentsim.launch.registry import Registry, StayingNode
from agentsim.rpc.staying import Carried, EndNode, Here

END_S = 30.0
"""How long ending runs, workers and model servers may take."""
_GONE_S = 15.0
_LOOK_S = 0.05
_FAR_LOOK_S = 0.2


async def end(known: Registry, owner: Owner, node: StayingNode) -> str:
    """End a node; what it ended.

    Raises:
        LaunchError: it does not answer, and cannot be ended from here.
    """
    try:
        what = (await owner.tell(node, EndNode(), Carried, END_S)).what
    except NoAnswer as error:
        what = await (_kill(node) if node.local else _kill_far(known, node, error))
    if node.local:
        await _gone(node.pid)
        shutil.rmtree(node.folder, ignore_errors=True)
    else:
        await _silent(owner, node)
    return what


async def _silent(owner: Owner, node: StayingNode) -> None:
    """Wait until a node of another machine does not answer any more."""
    with contextlib.suppress(NoAnswer):
        for _ in range(round(_GONE_S / _FAR_LOOK_S)):
            await owner.tell(node, Here(), Carried)
            await asyncio.sleep(_FAR_LOOK_S)


async def _kill_far(known: Registry, node: StayingNode, error: NoAnswer) -> str:
    """End a node of another machine that does not answer, through ssh.

    Raises:
        LaunchError: its machine does not answer to ssh either.
    """
    hostfile = known.read_hosts()
    hosts = [host for host in hostfile.hosts if host.address == node.host]
    asked = {"pid": node.pid, "folder": node.folder, "grace_s": 5.0, "most_bytes": 0}
    connection = Connection(hostfile.ssh, hosts[0])
    try:
        async with (
            asyncio.timeout(hostfile.ssh.connect_timeout_s + END_S),
            connection.call(far.program("farewell", asked)) as call,
        ):
            if await call.read() is not None:
                return "did not answer; it had ended, or was ended through ssh"
            problem = connection.problem(await call.status(), call.err())
    except TimeoutError:
        problem = connection.problem(None, "")
    raise LaunchError(f"{error}. Through ssh: {problem.what}") from None


async def _kill(node: StayingNode) -> str:
    """End a node of this machine that does not answer; what hangs on it goes with it."""
    if not is_node(node.pid):
        return "had ended already"
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(node.pid, signal.SIGKILL)  # it leads a session, which its workers are in
    return "did not answer, and was killed"


async def _gone(pid: int) -> None:
    for _ in range(round(_GONE_S / _LOOK_S)):
        if not is_node(pid):
            return
        await asyncio.sleep(_LOOK_S)
    raise LaunchError(f"process {pid} is still there")


def is_node(pid: int) -> bool:
    """Whether this process runs and is a node: numbers of processes are used again."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and "agentsim.node" in process.cmdline()
    except psutil.Error:
        return False
