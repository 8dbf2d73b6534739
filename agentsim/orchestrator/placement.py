"""Which worker hosts which agents, and where they go on when it is lost. Pure.

A worker that takes over gets a number that none had before: whatever still comes under the old one
is known to be stale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from agentsim.plan import RunPlan, Shard


@dataclass(frozen=True, slots=True)
class Replacement:
    """Agents go on in a new worker.

    Attributes:
        lost: the worker that hosted them.
        shard: they, with the new worker.
        node: where it is to be started, as a place in the plan's hosts.
        moved: whether that is another host than before.
    """

    lost: int
    shard: Shard
    node: int
    moved: bool


class Placement:
    """Who sits where, now.

    Args:
        plan: who sat where at the start.
        restarts: lost workers that may be replaced.

    Attributes:
        shards: in order of agents.
        restarts_left: lost workers that may still be replaced.
    """

    def __init__(self, plan: RunPlan, restarts: int) -> None:
        self.shards = list(plan.shards)
        self.restarts_left = restarts
        self._node_of: dict[int, int] = {}
        for node, host in enumerate(plan.hosts):
            for worker in range(host.first_worker, host.first_worker + host.workers):
                self._node_of[worker] = node
        self._next = plan.workers
        self._hosting = {shard.worker for shard in self.shards}

    def hosts_agents(self, worker: int) -> bool:
        """Whether agents sit in a worker now."""
        return worker in self._hosting

    def replace(self, lost: Collection[int], alive: Sequence[int]) -> list[Replacement] | None:
        """Give the agents of lost workers to new ones: on the same host if it is there, else on
        the one that has the fewest workers with agents.

        Args:
            lost: workers that are gone.
            alive: nodes that are there, as places in the plan's hosts.

        Returns:
            What is to be done; None when no node is left, or too many workers were lost.
        """
        places = [i for i, shard in enumerate(self.shards) if shard.worker in lost]
        if not places:
            return []
        if not alive or len(places) > self.restarts_left:
            return None
        self.restarts_left -= len(places)
        return [self._replace(place, alive) for place in places]

    def _replace(self, place: int, alive: Sequence[int]) -> Replacement:
        old = self.shards[place]
        before = self._node_of[old.worker]
        load = Counter(self._node_of[shard.worker] for shard in self.shards)
        node = before if before in alive else min(alive, key=lambda node: (load[node], node))
        new = Shard(self._next, old.first, old.count)
        self._hosting ^= {old.worker, new.worker}
        self._next += 1
        self._node_of[new.worker] = node
        self.shards[place] = new
        return Replacement(old.worker, new, node, moved=node != before)
