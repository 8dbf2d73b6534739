"""Every agent sits on exactly one worker, whatever the numbers."""

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentsim.config.hostfile import Host, Hostfile
from agentsim.config.scenario import Scenario
from agentsim.plan import make


def scenario(agents: int, sessions: int = 1, **model: Any) -> Scenario:
    model = model or {"backend": "random"}
    return Scenario.model_validate(
        {"name": "t", "agents": agents, "sessions": sessions, "rounds": 2, "game": {}}
        | {"model": model}
    )


def hostfile(*workers: int) -> Hostfile:
    return Hostfile(hosts=[Host(address=f"h{i}", workers=n) for i, n in enumerate(workers)])


@given(
    st.integers(1, 10_000), st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(1, 9)
)
def test_shards_cover_all_agents_once_and_evenly(agents, workers, sessions) -> None:
    plan = make(scenario(agents, sessions), hostfile(*workers))
    covered = list(itertools.chain(*(range(s.first, s.first + s.count) for s in plan.shards)))
    assert covered == list(range(agents))
    sizes = [shard.count for shard in plan.shards]
    assert max(sizes) - min(sizes) <= 1
    assert len({shard.worker for shard in plan.shards}) == len(plan.shards)
    assert plan.workers == sum(workers)
    assert plan.actions == agents * sessions * 2


def test_workers_are_numbered_over_all_hosts() -> None:
    plan = make(scenario(10), hostfile(2, 3))
    assert [(h.address, h.first_worker, h.workers) for h in plan.hosts] == [
        ("h0", 0, 2),
        ("h1", 2, 3),
    ]


def test_sessions_at_once_are_bounded_by_agents() -> None:
    assert make(scenario(1_000_000, 5), hostfile(2)).sessions_at_once == 1
    assert make(scenario(1_000, 5), hostfile(2)).sessions_at_once == 5
    language = {"backend": "openai", "name": "m"}
    assert make(scenario(1_000, 50, **language), hostfile(2)).sessions_at_once == 4
