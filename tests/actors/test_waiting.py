"""Who waits for whom: rooms that ask back, agents that ask each other, threads, time-outs."""

import asyncio
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hostile_agents import Intruder, RudeThread
from my_agents import Blocks, Echo, Sleeper
from waiting_agents import Asker, Room, ThreadRoom

from agentsim.actors import CallCancelled, CannotTravel, RemoteFailure
from agentsim.actors.threads import Threads
from agentsim.cluster import Cluster
from agentsim.errors import PeerLost

WAIT_S = 20
MODULES = ["my_agents", "hostile_agents", "waiting_agents"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.local(workers=2, modules=MODULES, threads=4) as cluster:
        yield cluster


# --- environments that ask back


@pytest.mark.parametrize("kind", [Room, ThreadRoom])
@pytest.mark.parametrize("members", [1, 2, 9])
def test_an_environment_may_ask_back_the_agents_that_await_it(cluster, kind, members) -> None:
    room = kind.on(cluster.worker(0))
    askers = [Asker.on(cluster.worker(i % 2), f"n{i}") for i in range(members)]
    for asker in askers:
        room.join(asker).result(WAIT_S)
    # Each awaits the room at once, and the room asks each of them back.
    answers = [asker.enter(room, asker).result(WAIT_S) for asker in askers]
    assert answers == [f"n{i}" for i in range(members)]
    at_once = [asker.enter(room, asker) for asker in askers]
    assert [answer.result(WAIT_S) for answer in at_once] == [f"n{i}" for i in range(members)]


@pytest.mark.parametrize("outer", [Room, ThreadRoom])
@pytest.mark.parametrize("inner", [Room, ThreadRoom])
def test_it_may_do_so_through_another_environment(cluster, outer, inner) -> None:
    hall, room = outer.on(cluster.worker(0)), inner.on(cluster.worker(1))
    hall.contain(room).result(WAIT_S)
    askers = [Asker.on(cluster.worker(i % 2), f"n{i}") for i in range(6)]
    at_once = [asker.enter(hall, asker) for asker in askers]
    assert [answer.result(WAIT_S) for answer in at_once] == [f"n{i}" for i in range(6)]


def test_members_that_speak_at_once_are_all_heard_by_those_who_are_free(cluster) -> None:
    """Each member waits for the room, which tells itself and each waiting member of a chain."""
    room = Room.on(cluster.worker(1))
    asker = Asker.on(cluster.worker(0), "only")
    room.join(asker).result(WAIT_S)
    group = cluster.group(Asker, [("g",)] * 20)
    done = [member.ask_for_all(room) for member in group]
    assert [p.result(WAIT_S) for p in done] == [["only"]] * 20


# --- agents that ask each other


def test_two_agents_that_ask_each_other_are_freed_by_a_timeout_and_a_cancel(cluster) -> None:
    a, b = Asker.on(cluster.worker(0), "a"), Asker.on(cluster.worker(1), "b")
    a.know(b).result(WAIT_S)
    b.know(a).result(WAIT_S)
    # Both are busy before either asks: each now waits for the other one.
    one, two = a.ask_later(0.3), b.ask_later(0.3)
    with pytest.raises(TimeoutError):
        one.result(1.0)
    assert not one.done
    assert not two.done
    one.cancel()
    with pytest.raises(CallCancelled):
        one.result(WAIT_S)
    assert two.result(WAIT_S) == "a"
    assert [a.called().result(WAIT_S), b.called().result(WAIT_S)] == ["a", "b"]


def test_an_agent_may_give_up_by_itself(cluster) -> None:
    a, b = Asker.on(cluster.worker(0), "a"), Asker.on(cluster.worker(1), "b")
    a.know(b).result(WAIT_S)
    b.know(a).result(WAIT_S)
    one, two = a.ask_for(0.3, 0.5), b.ask_later(0.3)
    assert one.result(WAIT_S) == "gave up"
    assert two.result(WAIT_S) == "a"


def test_a_cancel_frees_the_agents_that_the_cancelled_call_waits_for(cluster) -> None:
    a, b = Echo.on(cluster.worker(0)), Echo.on(cluster.worker(1))
    sleeper = Sleeper.on(cluster.worker(0))
    chain = a.ask(b, 1)
    chain.result(WAIT_S)
    waits = Asker.on(cluster.worker(1), "x").pass_to(sleeper, 60.0)
    time.sleep(0.3)
    waits.cancel()
    assert sleeper(0.0).result(WAIT_S) == 0.0


# --- threads


def test_threads_that_wait_for_threads_do_not_use_up_the_pool(cluster) -> None:
    """The pool has 4 threads; 12 chains of 10 wait in it at once."""
    agents = [[RudeThread.on(cluster.worker(0)) for _ in range(10)] for _ in range(12)]
    calls = [chain[0].ask(chain[1:], i) for i, chain in enumerate(agents)]
    assert [call.result(WAIT_S) for call in calls] == list(range(12))


def test_an_agent_is_busy_until_the_thread_of_a_cancelled_call_has_ended(cluster) -> None:
    agent = RudeThread.on(cluster.worker(1))
    first = agent.alone(0.5)
    time.sleep(0.2)
    first.cancel()
    assert agent.alone(0.0).result(WAIT_S) == 1


def test_a_cancel_reaches_a_thread_that_waits(cluster) -> None:
    thread, sleeper = Blocks.on(cluster.worker(1)), Sleeper.on(cluster.worker(0))
    held = sleeper(60.0)
    waits = thread.read_inside(sleeper)  # for 10 s
    time.sleep(0.3)
    waits.cancel()
    assert thread(0.0).result(5).startswith("agents-")
    held.cancel()


@pytest.mark.parametrize("method", ["leave", "stop"])
def test_what_a_thread_raises_is_its_callers(cluster, method) -> None:
    agent = RudeThread.on(cluster.worker(1))
    with pytest.raises(RemoteFailure, match=r"SystemExit|StopIteration"):
        getattr(agent, method)().result(WAIT_S)
    assert agent.coroutine().result(WAIT_S) == 5


def test_the_pool_runs_so_many_at_once_and_no_more() -> None:
    pool, running, most = Threads(3), 0, 0
    lock = threading.Lock()

    def work(waits: bool) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1
        if waits:
            with pool.waiting():
                time.sleep(0.005)

    futures = [pool.submit(lambda i=i: work(i % 5 == 0)) for i in range(200)]
    for future in futures:
        future.result(WAIT_S)
    assert 2 <= most <= 3
    assert pool.submit(threading.get_ident).result(WAIT_S) != threading.get_ident()
    pool.close()


def test_nothing_begins_in_a_pool_that_was_closed() -> None:
    pool = Threads(1)
    gate = threading.Event()
    first, second = pool.submit(gate.wait), pool.submit(gate.wait)
    time.sleep(0.05)
    pool.close()
    gate.set()
    assert first.result(WAIT_S)
    assert second.cancelled()


# --- who does not wait any more


async def test_a_result_may_come_when_nobody_waits_any_more(cluster) -> None:
    agent = Echo.on(cluster.worker(0))

    def give_up() -> object:
        placeholder = agent.slow(0.4, 1)

        async def wait() -> None:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(placeholder, 0.05)

        asyncio.run(wait())  # a loop that is closed when the result comes
        return placeholder

    placeholder = await asyncio.to_thread(give_up)
    assert await asyncio.wait_for(placeholder, WAIT_S) == 1
    assert agent(2).result(WAIT_S) == 2


def test_a_cancelled_call_may_have_ended_already(cluster) -> None:
    agent = Echo.on(cluster.worker(0))
    for size in (10, 100_000):
        placeholders = [agent.big(size) for _ in range(50)]
        for placeholder in placeholders:
            placeholder.cancel()
        for placeholder in placeholders:
            with pytest.raises(CallCancelled):
                placeholder.result(WAIT_S)
        placeholder = agent.big(size)
        placeholder.result(WAIT_S)
        placeholder.cancel()
        assert len(placeholder.result()) == size


def test_groups_are_cancelled_while_results_come(cluster) -> None:
    group = cluster.group(Sleeper, count=2000)
    for pause_s in (0.0, 0.01, 0.02, 0.05):
        placeholder = group(0.02)
        time.sleep(pause_s)
        placeholder.cancel()
        results = placeholder.results(WAIT_S)
        assert all(r == 0.02 or isinstance(r, CallCancelled) for r in results)
        assert placeholder.done == 2000


def test_nothing_is_kept_of_calls_that_are_let_go_at_once(cluster) -> None:
    """From several threads, while the loop's thread sends what they have called for."""
    agents = [Echo.on(cluster.worker(0)) for _ in range(4)]
    intruder = Intruder.on(cluster.worker(0))

    def work(agent) -> None:
        for _ in range(10_000):
            agent.called()

    threads = [threading.Thread(target=work, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for agent in agents:
        agent.called().result(WAIT_S)
    deadline = time.monotonic() + WAIT_S
    while (kept := intruder.kept().result(WAIT_S)) > 2:
        assert time.monotonic() < deadline, f"{kept} results are kept"
        time.sleep(0.05)


def test_a_placeholder_of_another_cluster_is_refused(cluster) -> None:
    with Cluster.local(workers=1, modules=MODULES) as other:
        placeholder = Echo.on(other)(1)
        with pytest.raises(CannotTravel, match="another cluster"):
            Echo.on(cluster)(placeholder)


def test_an_agent_whose_process_was_ended_is_lost_to_everybody(cluster) -> None:
    alone, asker = Sleeper.on(cluster.process), Asker.on(cluster.worker(1), "a")
    waits = asker.pass_to(alone, 60.0)
    time.sleep(0.5)
    cluster.release(alone)
    with pytest.raises(PeerLost, match="released"):
        waits.result(WAIT_S)
    with pytest.raises(PeerLost, match="released"):
        asker.pass_to(alone, 0.0).result(WAIT_S)
    # A process that begins later knows it too.
    with pytest.raises(PeerLost, match="released"):
        Asker.on(cluster.process, "b").pass_to(alone, 0.0).result(WAIT_S)


def test_calls_of_an_agent_that_was_released_fail(cluster) -> None:
    agent = Echo.on(cluster.worker(0))
    assert agent(1).result(WAIT_S) == 1
    cluster.release(agent)
    with pytest.raises(RemoteFailure, match="released"):
        agent(1).result(WAIT_S)


def test_calls_after_the_end_fail_at_once() -> None:
    with Cluster.local(workers=1, modules=MODULES) as cluster:
        agent, group = Echo.on(cluster), cluster.group(Echo, count=3)
        large = agent.big(100_000)
        agent(1).result(WAIT_S)
    for call in (agent, group, large.result):
        with pytest.raises(PeerLost, match="closed"):
            call().result(WAIT_S)
    del large
    gc.collect()


def test_a_lost_workers_own_calls_are_not_carried_on() -> None:
    """What a worker had called for is interrupted when it dies, and the agents are free again."""
    with Cluster.local(workers=2, modules=MODULES) as cluster:
        asker, sleeper = Asker.on(cluster.worker(0), "a"), Sleeper.on(cluster.worker(1))
        pid = Echo.on(cluster.worker(0)).pid().result(WAIT_S)
        waits = asker.pass_to(sleeper, 60.0)
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(PeerLost, match="worker 0 on localhost was ended by signal 9; its log"):
            waits.result(WAIT_S)
        assert sleeper(0.0).result(WAIT_S) == 0.0


@pytest.mark.slow
def test_processes_lie_on_the_hosts_in_turn(tmp_path) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("hosts: [{address: one, workers: 1}, {address: two, workers: 1}]\n")
    with Cluster.from_hostfile(hosts, modules=MODULES) as cluster:
        alone = [Echo.on(cluster.process), Echo.on(cluster.process)]
        several = cluster.process.group(Echo, count=3)
        where = []
        for agent in [*alone, *several]:
            with pytest.raises(RemoteFailure, match="ValueError: x") as caught:
                agent.fail("x").result(WAIT_S)
            where.append(caught.value.remote.where.rpartition(" ")[2])
        assert where == ["one", "two", "one", "two", "one"]


def test_a_listener_that_blocks_may_read(cluster) -> None:
    room = ThreadRoom.on(cluster.worker(0))
    asker = Asker.on(cluster.worker(0), "heard")
    assert room.handle("who", asker).result(WAIT_S) == ["heard"]


# --- calls on very many agents, which begin some at a time


def test_what_is_called_after_a_call_on_many_comes_after_it_at_each_agent(cluster) -> None:
    many = cluster.worker(0).group(Echo, count=12_000)
    everybody = many.slow(0.0, "first")
    late = many[len(many) - 1].act("second")
    all_late = many.act("third")
    assert everybody.result(60) == ["first"] * len(many)
    assert late.result(60) == "second"
    assert all_late.result(60) == ["third"] * len(many)
    for place in (0, len(many) - 1):
        history = many[place].history().result(60)
        said = [value for value in history if value not in ("second",)]
        assert [list(value) if isinstance(value, tuple) else value for value in said] == [
            ["begin", "first"],
            ["end", "first"],
            "third",
        ]


def test_a_call_on_many_can_be_cancelled_while_it_begins(cluster) -> None:
    many = cluster.worker(1).group(Echo, count=12_000)
    placeholder = many.slow(60.0)
    placeholder.cancel()
    with pytest.raises(CallCancelled):
        placeholder.result(WAIT_S)
    assert many.act(1).result(60) == [1] * len(many)
