"""Where agents go on when their worker is lost."""

from agentsim.config import Host, Hostfile, Scenario
from agentsim.orchestrator.placement import Placement
from agentsim.plan import Shard, make


def placement(*workers: int, restarts: int = 16) -> Placement:
    """Ten agents on hosts with so many workers each."""
    hosts = [Host(address=f"h{i}", workers=count) for i, count in enumerate(workers)]
    fields = {"name": "t", "agents": 10, "rounds": 1, "game": {}, "model": {"backend": "dummy"}}
    return Placement(make(Scenario.model_validate(fields), Hostfile(hosts=hosts)), restarts)


def test_a_lost_worker_is_replaced_on_its_host_under_a_new_number() -> None:
    placed = placement(2, 2)
    (one,) = placed.replace({1}, alive=[0, 1]) or []
    assert (one.lost, one.node, one.moved) == (1, 0, False)
    assert one.shard == Shard(4, first=2, count=3)
    assert placed.hosts_agents(4)
    assert not placed.hosts_agents(1)
    (again,) = placed.replace({4}, alive=[0, 1]) or []
    assert again.shard.worker == 5


def test_agents_of_a_lost_host_are_spread_over_those_that_are_left() -> None:
    placed = placement(2, 1, 2)
    moved = placed.replace({0, 1}, alive=[1, 2]) or []
    # The second host has one worker, then two: the next one goes to it as well.
    assert [(one.node, one.moved) for one in moved] == [(1, True), (1, True)]
    assert [shard.worker for shard in placed.shards] == [5, 6, 2, 3, 4]


def test_nothing_is_done_for_a_worker_without_agents() -> None:
    placed = placement(2)
    assert placed.replace({7}, alive=[0]) == []


def test_there_is_an_end_to_replacing() -> None:
    placed = placement(2, restarts=1)
    assert placed.replace({0, 1}, alive=[0]) is None
    assert len(placed.replace({0}, alive=[0]) or []) == 1
    assert placed.replace({1}, alive=[0]) is None
    assert placement(2).replace({0}, alive=[]) is None
