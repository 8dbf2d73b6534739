"""Places agents on workers and sessions in time. Pure: it starts and measures nothing."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from typing import Any

from agentsim.config.hostfile import Hostfile
from agentsim.config.models import LANGUAGE_MODELS
from agentsim.config.scenario import Scenario
from agentsim.plan.memory import Memory, expected

# Agents that are under way at once, over all sessions. Scripted players are limited by memory;
# language models by their endpoints, and a run that is cut should have whole sessions to show.
_ACTIVE_SCRIPTED = 1_000_000
_ACTIVE_LANGUAGE = 4_096


@dataclass(frozen=True, slots=True)
class Shard:
    """The agents `first` to `first + count - 1` of every session, hosted by one worker."""

    worker: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class HostPlan:
    """What one host runs.

    Attributes:
        first_worker: index of its first worker over all hosts.
    """

    address: str
    first_worker: int
    workers: int


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Who will sit where.

    Attributes:
        shards: in order of agents; a worker without agents has none.
        sessions_at_once: sessions that are played side by side.
        actions: rows that a whole run has.
        memory: what it is expected to take; None for what plays no game.
    """

    hosts: tuple[HostPlan, ...]
    shards: tuple[Shard, ...]
    sessions_at_once: int
    actions: int
    memory: Memory | None = None

    @property
    def workers(self) -> int:
        """Worker processes over all hosts."""
        return sum(host.workers for host in self.hosts)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
        return asdict(self)


def make(scenario: Scenario, hostfile: Hostfile) -> RunPlan:
    """The plan of a run: agents in blocks of almost equal size, in order, over all workers."""
    hosts = place(hostfile)
    workers = sum(host.workers for host in hosts)
    language = isinstance(scenario.model, LANGUAGE_MODELS)
    active = _ACTIVE_LANGUAGE if language else _ACTIVE_SCRIPTED
    shards = _shards(scenario.agents, workers)
    at_once = max(1, min(scenario.sessions, active // scenario.agents))
    return RunPlan(
        hosts=hosts,
        shards=shards,
        sessions_at_once=at_once,
        actions=scenario.agents * scenario.sessions * scenario.rounds,
        memory=expected(
            scenario,
            hosted=[shard.count for shard in shards],
            nodes=len(hosts),
            idle=workers - len(shards),
            sessions_at_once=at_once,
        ),
    )


def without_workers(hostfile: Hostfile) -> RunPlan:
    """The plan of what needs models alone: every host has a node, and no node has workers."""
    hosts = tuple(HostPlan(host.address, 0, 0) for host in hostfile.hosts)
    return RunPlan(hosts=hosts, shards=(), sessions_at_once=1, actions=0)


def place(hostfile: Hostfile) -> tuple[HostPlan, ...]:
    """Hosts with their workers, numbered over all hosts."""
    hosts = []
    workers = 0
    for host in hostfile.hosts:
        hosts.append(HostPlan(host.address, workers, host.workers))
        workers += host.workers
    return tuple(hosts)


def _shards(agents: int, workers: int) -> tuple[Shard, ...]:
    bounds = [agents * worker // workers for worker in range(workers + 1)]
    return tuple(
        Shard(worker, first, end - first)
        for worker, (first, end) in enumerate(itertools.pairwise(bounds))
        if end > first
    )
