"""Very many calls: memory stays flat, what waits holds no thread, nothing is dropped."""

import gc
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from my_agents import Echo
from scale_agents import Gate, Still, Walker

from agentsim.cluster import Cluster

WAIT_S = 100
MANY = 100_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.local(workers=2, modules=["my_agents", "scale_agents"]) as cluster:
        yield cluster


def memory_mib(pids: list[int]) -> list[float]:
    gc.collect()
    return [psutil.Process(pid).memory_info().rss / 2**20 for pid in pids]


def some_calls(agents: list, count: int) -> None:
    """Calls that are read, dropped, passed on, cancelled, failed and of groups."""
    one, two = agents
    read = [one(i) for i in range(count // 2)]
    passed = [two(one.called()) for _ in range(count // 8)]
    for _ in range(count // 8):
        two.called()
    cancelled = [one.slow(0.0) for _ in range(count // 64)]
    for placeholder in cancelled:
        placeholder.cancel()
    failed = [two.fail("x") for _ in range(count // 64)]
    assert [p.result(WAIT_S) for p in read] == list(range(count // 2))
    assert [p.result(WAIT_S) for p in passed] == ["one"] * (count // 8)
    for placeholder in failed:
        with pytest.raises(Exception, match="ValueError"):
            placeholder.result(WAIT_S)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_memory_stays_flat_over_a_million_calls(cluster, capsys) -> None:
    one = Still.on(cluster.worker(0), "one")
    two = Still.on(cluster.worker(1), "two")
    group = cluster.group(Still, [("g",)] * 1000)
    pids = [os.getpid(), one.pid().result(WAIT_S), two.pid().result(WAIT_S)]
    began, batch = time.monotonic(), 10_000
    for made in range(0, 1_000_000, batch):
        some_calls([one, two], batch - 2000)
        for _ in range(2):
            assert group.called().result(WAIT_S) == ["g"] * 1000
        if made == 100_000:
            before = memory_mib(pids)
    after = memory_mib(pids)
    grown = [round(b - a, 1) for a, b in zip(before, after, strict=True)]
    with capsys.disabled():
        print(f"\n1,000,000 calls in {time.monotonic() - began:.0f} s; grown by {grown} MiB")
    assert max(grown) < 8
    assert cluster._caller.pending == 0
    assert not cluster._caller._fetching


@pytest.mark.slow
def test_a_hundred_thousand_wait_without_a_thread_each(cluster, capsys) -> None:
    gate = Gate.on(cluster.worker(1))
    walkers = cluster.worker(0).group(Walker, count=MANY)
    lone = Walker.on(cluster.worker(0))
    began = time.monotonic()
    passed = walkers.through(gate, 7)
    total = lone.all_through(gate, MANY)
    while (count := gate.count().result(WAIT_S)) < 2 * MANY:
        assert time.monotonic() - began < WAIT_S, f"only {count} wait"
        time.sleep(0.1)
    # Each waits in the first worker, and is carried out in the second.
    threads = [gate.threads().result(WAIT_S), Walker.on(cluster.worker(0)).threads().result(WAIT_S)]
    assert max(threads) <= 3, threads
    assert not total.done
    gate.open()
    assert passed.result(WAIT_S) == [7] * MANY
    assert total.result(WAIT_S) == sum(range(MANY))
    assert gate.count().result(WAIT_S) == 0
    with capsys.disabled():
        print(f"\n{2 * MANY} waited in {time.monotonic() - began:.1f} s, threads: {threads}")


@pytest.mark.slow
def test_a_hundred_thousand_wait_for_one_agent_in_their_order(cluster, capsys) -> None:
    agent = Echo.on(cluster.worker(0))
    walkers = cluster.worker(1).group(Walker, count=MANY)
    first = agent.slow(1.0, "first")
    began = time.monotonic()
    theirs = walkers.tell(agent)
    mine = [agent(i) for i in range(MANY)]
    assert theirs.result(WAIT_S) == [None] * MANY
    assert [p.result(WAIT_S) for p in mine] == list(range(MANY))
    assert first.result(WAIT_S) == "first"
    said = agent.history().result(WAIT_S)
    assert [x for x in said if type(x) is int] == list(range(MANY))
    assert len(said) == 2 * MANY + 2
    with capsys.disabled():
        print(f"\n{2 * MANY} calls to a busy agent ended after {time.monotonic() - began:.1f} s")
