"""The actor runtime on real workers: order, re-entry, placeholders, failures, groups, events."""

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import my_agents
from my_agents import (
    Blocks,
    Broken,
    Echo,
    Member,
    Plan,
    Region,
    Sleeper,
    Square,
)

from agentsim.actors import (
    Agent,
    CallCancelled,
    CannotMove,
    CannotTravel,
    RemoteFailure,
)
from agentsim.cluster import Cluster
from agentsim.errors import PeerLost, UserError

WAIT_S = 20


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.local(workers=2, modules=["my_agents"]) as cluster:
        yield cluster


def test_agents_live_on_workers_and_say_what_they_are_told(cluster) -> None:
    alice, bob = Echo.on(cluster, "alice"), Echo("bob").to_dist(cluster)
    assert alice(5).result(WAIT_S) == 5
    assert [alice.called().result(WAIT_S), bob.called().result(WAIT_S)] == ["alice", "bob"]
    pids = {alice.pid().result(WAIT_S), bob.pid().result(WAIT_S)}
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_calls_of_one_caller_are_carried_out_in_their_order(cluster) -> None:
    agent = Echo.on(cluster)
    slow = agent.slow(0.05, "slow")
    for i in range(5):
        agent(i)
    assert agent.history().result(WAIT_S) == [("begin", "slow"), ("end", "slow"), 0, 1, 2, 3, 4]
    assert slow.done


def test_a_placeholder_is_passed_on_without_waiting(cluster) -> None:
    a, b, c = (Echo.on(cluster.worker(worker)) for worker in (0, 1, 0))
    began = time.monotonic()
    last = c.slow(0.0, b(a.slow(0.3, {"n": [1, 2]})))
    assert time.monotonic() - began < 0.2
    assert last.result(WAIT_S) == {"n": [1, 2]}


def test_one_result_reaches_several_agents(cluster) -> None:
    source = Echo.on(cluster)
    others = [Echo.on(cluster) for _ in range(4)]
    placeholder = source.slow(0.05, "news")
    assert [p.result(WAIT_S) for p in [other(placeholder) for other in others]] == ["news"] * 4


def test_a_large_result_is_fetched_when_it_is_read_or_passed_on(cluster) -> None:
    size = 300_000
    agent, other = Echo.on(cluster.worker(0)), Echo.on(cluster.worker(1))
    large = agent.big(size)
    assert len(other(large).result(WAIT_S)) == size
    assert len(large.result(WAIT_S)) == size


def test_a_result_is_read_through_its_placeholder(cluster) -> None:
    agent = Echo.on(cluster)
    assert agent({"a": 1})["a"] == 1
    assert agent(Plan(["x"])).steps == ["x"]


async def test_a_placeholder_can_be_awaited_in_the_users_own_loop(cluster) -> None:
    agent = Echo.on(cluster)
    assert await asyncio.wait_for(agent.slow(0.02, 3), WAIT_S) == 3
    assert await asyncio.wait_for(cluster.group(Echo, count=3).act(4), WAIT_S) == [4, 4, 4]


def test_agents_call_agents(cluster) -> None:
    a, b = Echo.on(cluster.worker(0), "a"), Echo.on(cluster.worker(1), "b")
    assert a.ask(b, 9).result(WAIT_S) == 9


def test_a_chain_may_come_back_to_the_agent_that_waits_for_it(cluster) -> None:
    a, b = Echo.on(cluster.worker(0)), Echo.on(cluster.worker(1))
    a.meet(a).result(WAIT_S)
    b.meet(a).result(WAIT_S)
    assert a.ask(b, 1).result(WAIT_S) == 1
    # a asks b, b asks a back, while a waits
    assert a.ask_me(b, 11).result(WAIT_S) == 11


def test_an_exception_crosses_with_its_traceback_and_place(cluster) -> None:
    with pytest.raises(RemoteFailure, match="ValueError: too bad") as caught:
        Echo.on(cluster.worker(1)).fail("too bad").result(WAIT_S)
    assert "in fail" in str(caught.value)
    assert "my_agents.py" in str(caught.value)
    assert "worker 1 on localhost" in str(caught.value)


def test_a_failed_argument_fails_the_call_that_needs_it(cluster) -> None:
    a, b = Echo.on(cluster), Echo.on(cluster)
    with pytest.raises(RemoteFailure, match="ValueError: first"):
        b(a.fail("first")).result(WAIT_S)
    assert b(1).result(WAIT_S) == 1


def test_an_agent_that_cannot_be_made_says_so_when_it_is_called(cluster) -> None:
    with pytest.raises(RemoteFailure, match="RuntimeError: cannot be made"):
        Broken.on(cluster)().result(WAIT_S)


def test_what_awaits_is_interrupted_by_cancel(cluster) -> None:
    agent = Echo.on(cluster)
    placeholder = agent.slow(60, "never")
    waits = agent(1)
    agent.called()
    placeholder.cancel()
    with pytest.raises(CallCancelled):
        placeholder.result(WAIT_S)
    assert waits.result(WAIT_S) == 1


def test_what_has_not_begun_does_not_after_cancel(cluster) -> None:
    agent = Echo.on(cluster)
    agent.slow(0.2, "first")
    agent("second").cancel()
    history = agent.history().result(WAIT_S)
    assert "second" not in history


def test_reading_on_a_workers_loop_is_refused(cluster) -> None:
    a, b = Echo.on(cluster.worker(0)), Echo.on(cluster.worker(1))
    with pytest.raises(RemoteFailure, match="await"):
        a.read_inside(b).result(WAIT_S)


def test_agents_that_block_have_threads_and_may_read(cluster) -> None:
    blocks = [Blocks.on(cluster.worker(0)) for _ in range(4)]
    began = time.monotonic()
    names = {p.result(WAIT_S) for p in [agent(0.3) for agent in blocks]}
    assert time.monotonic() - began < 1.0
    assert len(names) == 4
    assert blocks[0].read_inside(Echo.on(cluster.worker(0))).result(WAIT_S) == 1
    assert Echo.on(cluster).thread().result(WAIT_S) == "MainThread"


def test_a_timeout_tells_and_harms_nothing(cluster) -> None:
    placeholder = Echo.on(cluster).slow(0.5, 1)
    with pytest.raises(TimeoutError, match=r"no result within 0.05 s"):
        placeholder.result(0.05)
    assert placeholder.result(WAIT_S) == 1


# --- groups


def test_a_group_is_called_in_one_breath_and_answers_in_order(cluster) -> None:
    group = cluster.group(Echo, [(f"n{i}",) for i in range(101)])
    assert len(group) == 101
    assert group.called().result(WAIT_S) == [f"n{i}" for i in range(101)]
    assert group[100].called().result(WAIT_S) == "n100"
    assert [p.called().result(WAIT_S) for p in group[3:5]] == ["n3", "n4"]
    assert {group[0].pid().result(WAIT_S), group[100].pid().result(WAIT_S)} == set(
        group.pid().result(WAIT_S)
    )


def test_a_groups_results_come_as_they_are_ready(cluster) -> None:
    group = cluster.group(Echo, count=6)
    group[2].slow(0.5, "busy")
    order = [agent for agent, _ in group.act(1)]
    assert sorted(order) == list(range(6))
    assert order[-1] == 2


def test_one_agents_failure_is_that_agents(cluster) -> None:
    group = cluster.group(Echo, count=3)
    results = group.act(1).results(WAIT_S)
    assert results == [1, 1, 1]
    with pytest.raises(RemoteFailure, match="ValueError"):
        group.fail("x").result(WAIT_S)
    failures = group.fail("x").results(WAIT_S)
    assert [type(failure) for failure in failures] == [RemoteFailure] * 3


def test_a_groups_argument_may_be_a_placeholder(cluster) -> None:
    group = cluster.group(Echo, count=5)
    assert group.act(Echo.on(cluster).slow(0.05, "x")).result(WAIT_S) == ["x"] * 5


def test_agents_do_not_share_what_they_were_told(cluster) -> None:
    group = cluster.group(Echo, count=2)
    group.act([1]).result(WAIT_S)
    a, b = group.history().result(WAIT_S)
    assert a == b == [[1]]
    assert a is not b


def test_a_group_call_can_be_cancelled(cluster) -> None:
    placeholder = cluster.group(Sleeper, count=50).act(60.0)
    time.sleep(0.1)
    placeholder.cancel()
    with pytest.raises(CallCancelled):
        placeholder.result(WAIT_S)


# --- environments


def test_listeners_hear_and_may_stay_silent(cluster) -> None:
    square = Square.on(cluster.worker(0))
    members = [Member.on(cluster.worker(i % 2), name) for i, name in enumerate("xyz")]
    for count, member in enumerate(members, 1):
        assert square.join(member).result(WAIT_S) == count
    assert square.handle("say", "hello").result(WAIT_S) == [[[None], [None], [None]]]
    # A member speaks, and hears itself by way of the environment that it waits for.
    assert members[0].speak(square, "who?").result(WAIT_S) == [
        [["x: who?"], ["y: who?"], ["z: who?"]]
    ]
    assert [m.ears().result(WAIT_S) for m in members] == [["hello", "who?"]] * 3
    assert square.handle("nothing", 1).result(WAIT_S) == []


def test_an_environment_is_visited_by_many_at_once(cluster) -> None:
    square = Square.on(cluster)
    visits = [square.visit(0.2) for _ in range(20)]
    assert max(v.result(WAIT_S) for v in visits) == 20


def test_an_environment_has_children_and_adds_up_what_they_say(cluster) -> None:
    places = cluster.group(Region, [(None, float(i)) for i in range(50)])
    region = Region.on(cluster, places)
    assert region.total().result(WAIT_S) == sum(range(50))
    assert region.tell("hello").result(WAIT_S) == [[float(i)] for i in range(50)]
    world = Region.on(cluster, cluster.group(Region, [(places, 1.0), (places, 2.0)]))
    assert world.total().result(WAIT_S) == 3.0


# --- processes


def test_agents_can_have_a_process_each(cluster) -> None:
    group = cluster.process.group(Echo, [(f"p{i}",) for i in range(3)])
    alone = Echo.on(cluster.process, "alone")
    pids = [*group.pid().result(WAIT_S), alone.pid().result(WAIT_S)]
    assert len({*pids, os.getpid()}) == 5
    assert group.called().result(WAIT_S) == ["p0", "p1", "p2"]
    assert Echo.on(cluster).ask(alone, 4).result(WAIT_S) == 4
    cluster.release(group)
    cluster.release(alone)
    deadline = time.monotonic() + WAIT_S
    while any(Path(f"/proc/{pid}/exe").exists() for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    with pytest.raises(PeerLost):
        alone(1).result(WAIT_S)
    assert Echo.on(cluster)(2).result(WAIT_S) == 2


# --- what may not happen


def test_what_cannot_travel_is_refused_where_it_is_sent(cluster) -> None:
    agent = Echo.on(cluster)
    with pytest.raises(CannotTravel, match=r"argument.*of `act`"):
        agent({"f": lambda: 1})
    with pytest.raises(CannotTravel):
        Echo.on(cluster, open)


def test_an_object_that_has_changed_does_not_move(cluster) -> None:
    agent = Echo("a")
    agent(1)
    with pytest.raises(CannotMove, match=r"Echo\.calls has changed"):
        agent.to_dist(cluster)


def test_classes_that_workers_cannot_find_are_refused(cluster) -> None:
    class Local(Agent):
        pass

    with pytest.raises(CannotMove, match="top level of a module"):
        Local.on(cluster)
    with pytest.raises(UserError, match="not among the cluster's modules"):
        Agent.on(cluster)


def test_methods_that_are_not_public_are_refused_at_the_proxy(cluster) -> None:
    agent = Echo.on(cluster)
    with pytest.raises(AttributeError):
        agent._private()
    with pytest.raises(AttributeError, match="no public method `nothing`"):
        agent.nothing()


def test_no_result_is_kept_after_its_users_ended(cluster) -> None:
    agent = Echo.on(cluster.worker(0))
    for placeholder in [agent(i) for i in range(500)]:
        placeholder.result(WAIT_S)
    placeholder = None
    for i in range(500):
        agent(i)
    gc.collect()
    agent.called().result(WAIT_S)
    assert cluster._caller.pending == 0
    assert not cluster._caller._fetching


def test_a_thousand_chains_take_as_long_as_one(cluster) -> None:
    agents = [cluster.group(Echo, count=1000) for _ in range(3)]
    began = time.monotonic()
    chains = []
    for a, b, c in zip(*agents, strict=True):
        chains.append(c.slow(1.0, b.slow(1.0, a.slow(1.0, 7))))
    assert [chain.result(WAIT_S) for chain in chains] == [7] * 1000
    assert time.monotonic() - began < 3.0 + 4.0  # 1 s on a quiet machine


# --- losses


def test_a_worker_that_dies_fails_what_it_owned_and_nothing_else() -> None:
    with Cluster.local(workers=2, modules=["my_agents"]) as cluster:
        victim, other = Echo.on(cluster.worker(0)), Echo.on(cluster.worker(1))
        pid = victim.pid().result(WAIT_S)
        waits = victim.slow(60)
        depends = other(victim.slow(60))
        inside = other.ask(victim, 1)
        group = cluster.group(Sleeper, count=4).act(60.0)
        kept = other.slow(1.0, "kept")
        os.kill(pid, signal.SIGKILL)
        for placeholder in (waits, depends, inside, group):
            with pytest.raises(PeerLost, match=r"worker 0 on localhost was ended by signal 9") as e:
                placeholder.result(WAIT_S)
            assert "log" in str(e.value)
        assert kept.result(WAIT_S) == "kept"
        with pytest.raises(PeerLost):
            victim(1).result(WAIT_S)
        assert Echo.on(cluster)(5).result(WAIT_S) == 5


def test_two_hosts_reach_each_other(tmp_path) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("hosts: [{address: one, workers: 1}, {address: two, workers: 1}]\n")
    with Cluster.from_hostfile(hosts, modules=["my_agents"]) as cluster:
        a, b = Echo.on(cluster.worker(0)), Echo.on(cluster.worker(1))
        assert b(a.slow(0.05, [1, 2])).result(WAIT_S) == [1, 2]
        assert a.ask(b, 3).result(WAIT_S) == 3
        with pytest.raises(RemoteFailure, match="on two"):
            b.fail("x").result(WAIT_S)


def test_everything_fails_when_the_cluster_closes() -> None:
    with Cluster.local(workers=1, modules=["my_agents"]) as cluster:
        waits = Echo.on(cluster).slow(60)
    with pytest.raises(PeerLost, match="closed"):
        waits.result(WAIT_S)


def test_the_module_travels_as_its_source(cluster) -> None:
    assert my_agents.__file__ is not None
    with pytest.raises(RemoteFailure) as caught:
        Echo.on(cluster).fail("x").result(WAIT_S)
    assert my_agents.__file__ not in str(caught.value)
