"""Workers and nodes that are ended or given up, while the others go on."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from whole_runs import Program

from agentsim import nodes as module
from agentsim.config.hostfile import Host, Hostfile
from agentsim.errors import PeerLost
from agentsim.launch import LocalLauncher
from agentsim.nodes import Nodes, open_nodes
from agentsim.plan import RunPlan, place
from agentsim.rpc.control import Enrol
from agentsim.rpc.envelope import Kind
from agentsim.rpc.silence import Silence, State

sys.path.insert(0, str(Path(__file__).parent))

SHORT = Silence(notice_s=2.0, grace_s=2.0)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Finds the processes of this test."""
    program = Program(tmp_path)
    monkeypatch.setenv("AGENTSIM_TEST_MARK", program.env["AGENTSIM_TEST_MARK"])
    return program


@pytest.fixture
def notices() -> list[str]:
    return []


@pytest.fixture
async def nodes(own: Program, notices: list[str], request) -> AsyncIterator[Nodes]:
    silence = getattr(request, "param", Silence(2.0, 60.0))
    hosts = place(Hostfile(hosts=[Host(workers=3)]))
    plan = RunPlan(hosts, (), sessions_at_once=1, actions=0)
    launcher = LocalLauncher(own.folder)
    async with open_nodes(plan, launcher, {}, notices.append, silence) as nodes:
        yield nodes
    await asyncio.to_thread(own.assert_nothing_left)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(40):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.05)


def workers(own: Program) -> list[int]:
    return own.processes("agentsim.worker")


def states(nodes: Nodes) -> list[State]:
    return [state.state for state in nodes.states()]


@pytest.mark.slow
async def test_a_worker_that_is_stopped_can_be_ended(own, nodes, notices) -> None:
    os.kill(workers(own)[0], signal.SIGSTOP)
    await until(lambda: bool(notices))
    frozen = next(s.worker for s in nodes.states() if s.state is State.FROZEN)
    assert frozen is not None
    assert re.fullmatch(
        rf"worker {frozen} on localhost has been silent for \d+ s; waiting 60 s more for it; "
        rf"see its log: {own.folder}/worker-{frozen}\.log",
        notices[0],
    )
    await nodes.end([frozen])
    await until(lambda: len(workers(own)) == 2)
    await nodes.end([frozen])  # harmless
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(nodes.receive(), 1.0)
    await nodes.spawn(0, [3])
    await until(lambda: len(workers(own)) == 3)


@pytest.mark.slow
async def test_an_end_overtakes_what_waits_for_a_worker_that_takes_nothing(own, nodes) -> None:
    async def fill() -> None:
        for _ in range(60):
            await nodes.send(0, Kind.ENROL, Enrol(1, 0, 1, ["x" * 1_000_000]))

    for pid in workers(own):
        os.kill(pid, signal.SIGSTOP)
    filling = asyncio.ensure_future(fill())
    done, _ = await asyncio.wait({filling}, timeout=3.0)
    assert not done, "too much waits, and so does the sender"
    await asyncio.wait_for(nodes.end([0]), 5)
    await until(lambda: len(workers(own)) == 2)
    await asyncio.wait_for(filling, 30)


@pytest.mark.slow
async def test_losses_are_told_once_and_the_others_go_on(own, nodes) -> None:
    victim, node = workers(own)[0], own.processes("agentsim.node")[0]
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(PeerLost, match="was ended by signal 9") as loss:
        await asyncio.wait_for(nodes.receive(), 30)
    (lost,) = loss.value.workers
    assert nodes.alive() == [0]
    os.kill(node, signal.SIGKILL)
    with pytest.raises(PeerLost, match="the node of localhost was ended by signal 9") as loss:
        await asyncio.wait_for(nodes.receive(), 30)
    assert sorted([lost, *loss.value.workers]) == [0, 1, 2]
    assert nodes.alive() == []
    assert states(nodes) == [State.LOST] * 4
    with pytest.raises(PeerLost):
        await nodes.spawn(0, [4])
    await nodes.end([0, 1, 2])
    await until(lambda: not workers(own))


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [SHORT], indirect=True)
async def test_a_worker_that_stays_silent_is_given_up_and_ended(own, nodes, notices) -> None:
    os.kill(workers(own)[0], signal.SIGSTOP)
    with pytest.raises(PeerLost, match=r"has been silent for \d+ s and was given up") as loss:
        await asyncio.wait_for(nodes.receive(), 60)
    assert len(loss.value.workers) == 1
    await until(lambda: len(workers(own)) == 2)
    assert states(nodes).count(State.LOST) == 1
    assert nodes.alive() == [0]


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [SHORT], indirect=True)
async def test_a_node_that_stays_silent_is_given_up_and_ended(own, nodes) -> None:
    os.kill(own.processes("agentsim.node")[0], signal.SIGSTOP)
    with pytest.raises(PeerLost, match="the node of localhost has been silent for") as loss:
        await asyncio.wait_for(nodes.receive(), 60)
    assert loss.value.workers == (0, 1, 2)
    await until(lambda: not own.processes("agentsim."))


@pytest.mark.slow
def test_a_worker_whose_lock_is_held_is_noticed_and_given_up(own, monkeypatch) -> None:
    from gil_agents import Holder

    from agentsim.cluster import Cluster

    monkeypatch.setattr(module, "SILENCE", SHORT)
    with Cluster.local(2, modules=["gil_agents"]) as cluster:
        holder, other = Holder.on(cluster), Holder.on(cluster)
        assert holder.hold(0.1).result(30) == "done"
        held = holder.hold(60.0)
        with pytest.raises(PeerLost, match="on localhost has been silent for"):
            held.result(60)
        assert other.greet().result(30) == "hello"
        own.wait_for(lambda: len(workers(own)) == 1)
    own.assert_nothing_left()
