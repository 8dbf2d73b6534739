"""Clusters that stay: brought up, added to, taken down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from agentsim.config.hostfile import Host, Hostfile
from agentsim.errors import AgentsimError, LaunchError, UserError
from agentsim.launch import registry
from agentsim.launch.detached import Beginning, begin_by_ssh, begin_locally
from agentsim.launch.ending import end as end_node
from agentsim.launch.looking import owner_of
from agentsim.launch.preflight import Watcher, usable
from agentsim.launch.registry import Registry, Staying, StayingNode
from agentsim.launch.ssh import SshLauncher
from agentsim.rpc.staying import Stay
from agentsim.version import __version__

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
                ended.hosts[node.host] = await end_node(known, owner, node)
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
