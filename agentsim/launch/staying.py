"""Clusters that stay: brought up, added to, taken down."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil

from agentsim.config.hostfile import Host, Hostfile
from agentsim.errors import AgentsimError, LaunchError, UserError
from agentsim.launch import far, registry
from agentsim.launch.connection import Connection
from agentsim.launch.control import NoAnswer, Owner
from agentsim.launch.detached import Beginning, begin_by_ssh, begin_locally
from agentsim.launch.preflight import Watcher, usable
from agentsim.launch.registry import Registry, Staying, StayingNode
from agentsim.launch.ssh import SshLauncher
from agentsim.rpc.staying import (
    Carried,
    Drain,
    EndNode,
    EndRun,
    Here,
    LogPart,
    NodeReport,
    ReadLog,
    Status,
    Stay,
)
from agentsim.version import __version__

# Ending runs, workers and model servers takes its time.
_END_S = 30.0
_GONE_S = 15.0
_LOOK_S = 0.05
_FAR_LOOK_S = 0.2
# A host's slots for each worker that one run has there, unless the user says otherwise.
_SLOTS_A_WORKER = 2


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms nodes stay.

    Attributes:
        idle_s: they end by themselves after so long without a run.
        slots: worker processes that each host may have at once; None: twice its workers.
    """

    idle_s: float
    slots: int | None = None


@dataclass(frozen=True, slots=True)
class HostStatus:
    """A node of a cluster, as it answered.

    Attributes:
        report: None when it did not answer.
        problem: why not; empty when it did.
        heard: when it has answered last before that: UTC, ISO 8601; empty: never.
    """

    node: StayingNode
    report: NodeReport | None = None
    problem: str = ""
    heard: str = ""


@dataclass(slots=True)
class Ended:
    """What `down` ended.

    Attributes:
        hosts: what each said, by host.
        left: nodes that did not answer and may still run.
    """

    hosts: dict[str, str] = field(default_factory=dict)
    left: list[StayingNode] = field(default_factory=list)


async def up(name: str, hostfile: Hostfile, terms: Terms, watcher: Watcher) -> Staying:
    """Start a cluster; all of its nodes, or none.

    Args:
        watcher: is told how it goes.

    Raises:
        UserError: there is one of that name, or a host cannot be used as it is.
        LaunchError: nodes did not come up; the message has all of them.
    """
    _refuse(hostfile)
    with registry.registry(name).locked():
        new = registry.create(name)
        try:
            hostfile = await usable(hostfile, watcher)
            if hostfile.launcher == "ssh":
                new.make_authority()
            started = datetime.now(UTC).isoformat(timespec="seconds")
            staying = Staying(name, __version__, started, hostfile.launcher, terms.idle_s, [])
            return await _begin(new, staying, hostfile, hostfile.hosts, terms)
        except BaseException:
            new.remove()
            raise


async def add(
    name: str, hosts: Sequence[Host], slots: int | None, watcher: Watcher
) -> list[StayingNode]:
    """Start further nodes of a cluster, with the terms of the others.

    Args:
        hosts: reached as those that are there.
        slots: see `Terms`.
        watcher: is told how it goes.

    Raises:
        UserError: there is no such cluster, or it has such a host.
        LaunchError: nodes did not come up; the others are as before.
    """
    known = registry.registry(name)
    with known.locked():
        staying = known.read()
        there = {node.host for node in staying.nodes}
        twice = [host.address for host in hosts if host.address in there]
        if twice:
            raise UserError(f"cluster {name} has {', '.join(twice)} already")
        before = known.read_hosts()
        new = before.model_copy(update={"hosts": list(hosts), "minimum_hosts": None})
        await usable(new, watcher)
        after = before.model_copy(update={"hosts": [*before.hosts, *hosts]})
        terms = Terms(staying.idle_s, slots)
        return (await _begin(known, staying, after, hosts, terms)).nodes[len(staying.nodes) :]


async def status(staying: Staying) -> list[HostStatus]:
    """How the nodes of a cluster are, in order; each has a few seconds to answer."""

    owner = owner_of(staying)

    async def ask(node: StayingNode) -> HostStatus:
        try:
            report = await owner.tell(node, Status(), NodeReport)
            await owner.renew(node)
            return HostStatus(node, report)
        except AgentsimError as error:
            problem = str(error)
            if node.local and not _is_node(node.pid):
                problem = (
                    "its program has ended: after its idle time, or somebody ended it; "
                    f"its log: {node.log}"
                )
            return HostStatus(node, problem=problem, heard=heard.get(node.host, ""))

    known = registry.registry(staying.name)
    heard = known.heard()
    hosts = list(await asyncio.gather(*map(ask, staying.nodes)))
    known.hear(host.node.host for host in hosts if host.report is not None)
    return hosts


def owner_of(staying: Staying) -> Owner:
    """Who gives commands to a cluster's nodes.

    Raises:
        UserError: its certificates cannot be read.
    """
    return Owner(registry.registry(staying.name).authority())


def node_of(staying: Staying, host: str) -> StayingNode:
    """The node of a host.

    Raises:
        UserError: the cluster has no such host.
    """
    for node in staying.nodes:
        if node.host == host:
            return node
    hosts = ", ".join(node.host for node in staying.nodes)
    raise UserError(f"cluster {staying.name} has no host {host}; it has: {hosts}")


async def drain(name: str, host: str, *, on: bool) -> str:
    """Let a host take no new runs, or take them again; what it did.

    Raises:
        UserError: the cluster has no such host.
        LaunchError: it does not answer.
    """
    known = registry.registry(name)
    with known.locked():
        staying = known.read()
        what = (await owner_of(staying).tell(node_of(staying, host), Drain(on), Carried)).what
        drained = sorted({*staying.drained, host} if on else set(staying.drained) - {host})
        known.write(msgspec.structs.replace(staying, drained=drained))
        known.write_hosts(known.read_hosts(), drained)
    return what


async def read_log(owner: Owner, node: StayingNode, offset: int) -> LogPart:
    """A part of a node's log; of one that is gone, from its file if that is on this machine.

    Raises:
        AgentsimError: it does not answer, or the log cannot be read.
    """
    try:
        return await owner.tell(node, ReadLog(offset), LogPart)
    except NoAnswer:
        if not node.local:
            raise
        return await asyncio.to_thread(_read, Path(node.log), offset)


def _read(log: Path, offset: int) -> LogPart:
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size + offset) if offset < 0 else min(offset, size))
            data = file.read()
            return LogPart(data, file.tell())
    except OSError as error:
        raise UserError(f"{log}: cannot be read: {error.strerror}") from error


async def stop_run(staying: Staying, run: str) -> dict[str, str]:
    """End a run at all nodes; what each did, by host.

    Args:
        run: its name, or what a node calls it.

    Raises:
        UserError: no node has such a run.
    """
    hosts = await status(staying)
    found = [
        (host.node, one.run_id)
        for host in hosts
        for one in (host.report.runs if host.report else [])
        if run in (one.name, one.run_id)
    ]
    if not found:
        runs = ", ".join(sorted(runs_of(hosts))) or "none"
        raise UserError(f"cluster {staying.name} has no run {run}; it has: {runs}")
    why = "the run was ended by `agentsim cluster stop`"

    async def end(node: StayingNode, run_id: str) -> str:
        return (await owner.tell(node, EndRun(run_id, why), Carried, _END_S)).what

    owner = owner_of(staying)
    ended = await asyncio.gather(*(end(node, run_id) for node, run_id in found))
    return {node.host: what for (node, _), what in zip(found, ended, strict=True)}


def runs_of(hosts: Sequence[HostStatus]) -> set[str]:
    """Names of the runs that go on."""
    return {run.name for host in hosts if host.report for run in host.report.runs}


async def down(name: str, *, forget: bool = False) -> Ended:
    """End a cluster and all that it started.

    Args:
        forget: also the nodes that do not answer, which may still run.

    Raises:
        UserError: there is no such cluster.
    """
    known = registry.registry(name)
    with known.locked():
        staying = known.read()
        ended, owner = Ended(), owner_of(staying)

        async def end(node: StayingNode) -> None:
            try:
                ended.hosts[node.host] = await _end(known, owner, node)
            except AgentsimError as error:
                ended.hosts[node.host] = str(error)
                ended.left.append(node)

        await asyncio.gather(*map(end, staying.nodes))
        if ended.left and not forget:
            known.write(msgspec.structs.replace(staying, nodes=ended.left))
        else:
            known.remove()
        return ended


def _refuse(hostfile: Hostfile) -> None:
    """Refuse what cannot stay.

    Raises:
        UserError: it is such a hostfile.
    """
    if hostfile.cluster is not None:
        raise UserError(f"the hostfile is of cluster {hostfile.cluster}, which is there already")
    if hostfile.launcher == "ssh" and hostfile.transport == "tunnel":
        raise UserError(
            "nodes that stay are reached at a port of theirs, and `transport: tunnel` is for runs "
            "that start their own: open the ports of `port` to this machine"
        )


async def _begin(
    known: Registry, staying: Staying, hostfile: Hostfile, hosts: Sequence[Host], terms: Terms
) -> Staying:
    """Start nodes; when all are up, write them down and let them go on by themselves."""
    begun: list[Beginning] = []
    failed: list[str] = []
    launcher: SshLauncher | None = None

    def stay(host: Host) -> Stay:
        slots = terms.slots or _SLOTS_A_WORKER * host.workers
        return Stay(known.name, host.address, slots, terms.idle_s)

    if hostfile.launcher == "ssh":
        authority = known.authority()
        launcher = SshLauncher(hostfile, known.logs, {}, authority=authority, stay=stay)

    async def begin(host: Host, index: int) -> None:
        try:
            if launcher is None:
                begun.append(await begin_locally(known, index, stay(host)))
            else:
                begun.append(await begin_by_ssh(launcher, index, stay(host)))
        except LaunchError as error:
            failed.append(str(error))

    first = len(staying.nodes)
    try:
        await asyncio.gather(*(begin(host, first + i) for i, host in enumerate(hosts)))
        if failed:
            raise LaunchError("\n".join(sorted(failed)))
        begun.sort(key=lambda one: one.index)
        nodes = [*staying.nodes, *(one.node for one in begun)]
        staying = msgspec.structs.replace(staying, nodes=nodes)
        known.write_hosts(hostfile, staying.drained)
        known.write(staying)
        await asyncio.gather(*(one.keep() for one in begun))
    except BaseException:
        await asyncio.shield(asyncio.gather(*(one.abandon() for one in begun)))
        raise
    return staying


async def _end(known: Registry, owner: Owner, node: StayingNode) -> str:
    """End a node; what it ended.

    Raises:
        LaunchError: it does not answer, and cannot be ended from here.
    """
    try:
        what = (await owner.tell(node, EndNode(), Carried, _END_S)).what
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
            asyncio.timeout(hostfile.ssh.connect_timeout_s + _END_S),
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
    if not _is_node(node.pid):
        return "had ended already"
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(node.pid, signal.SIGKILL)  # it leads a session, which its workers are in
    return "did not answer, and was killed"


async def _gone(pid: int) -> None:
    for _ in range(round(_GONE_S / _LOOK_S)):
        if not _is_node(pid):
            return
        await asyncio.sleep(_LOOK_S)
    raise LaunchError(f"process {pid} is still there")


def _is_node(pid: int) -> bool:
    """Whether this process runs and is a node: numbers of processes are used again."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and "agentsim.node" in process.cmdline()
    except psutil.Error:
        return False
