"""Clusters that stay: looked at, and told what to do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agentsim.errors import AgentsimError, UserError
from agentsim.launch import registry
from agentsim.launch.control import NoAnswer, Owner
from agentsim.launch.ending import END_S, is_node
from agentsim.launch.registry import Staying, StayingNode
from agentsim.rpc.staying import Carried, Drain, EndRun, LogPart, NodeReport, ReadLog, Status


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
            if node.local and not is_node(node.pid):
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


def runs_of(hosts: Sequence[HostStatus]) -> set[str]:
    """Names of the runs that go on."""
    return {run.name for host in hosts if host.report for run in host.report.runs}


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
        return (await owner.tell(node, EndRun(run_id, why), Carried, END_S)).what

    owner = owner_of(staying)
    ended = await asyncio.gather(*(end(node, run_id) for node, run_id in found))
    return {node.host: what for (node, _), what in zip(found, ended, strict=True)}
