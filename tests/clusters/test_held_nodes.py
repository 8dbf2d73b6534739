"""Nodes that a process holds for several runs, and runs that lose their orchestrator there."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import msgspec
import psutil
import pytest
from whole_runs import Program

from agentsim.config.hostfile import Host, Hostfile
from agentsim.errors import LaunchError, PeerLost
from agentsim.launch import LocalLauncher, held_locally
from agentsim.launch.attach import AttachLauncher
from agentsim.launch.control import Owner
from agentsim.launch.held import staying
from agentsim.launch.registry import StayingNode
from agentsim.nodes import open_nodes
from agentsim.plan import RunPlan, place
from agentsim.rpc.staying import Carried, Drain, NodeReport, Status, Stay

pytestmark = pytest.mark.timeout(600)

HOSTFILE = Hostfile(hosts=[Host(address="one", workers=1)])
PLAN = RunPlan(place(HOSTFILE), (), sessions_at_once=1, actions=0)


async def report(node: StayingNode) -> NodeReport:
    return await Owner().tell(node, Status(), NodeReport, 30)


def is_gone(folder: str) -> bool:
    return not Path(folder).exists()


def logs(tmp_path: Path, name: str) -> Path:
    path = tmp_path / name / "logs"
    path.mkdir(parents=True)
    return path


@pytest.mark.slow
async def test_runs_use_one_node_after_another_and_leave_it(tmp_path: Path) -> None:
    async with held_locally(HOSTFILE, logs(tmp_path, "all"), {}) as make:
        pids = set()
        for name in ("first", "second"):
            launcher = make(logs(tmp_path, name), {})
            assert isinstance(launcher, AttachLauncher)
            (node,) = launcher.nodes
            async with open_nodes(PLAN, launcher, {}, print):
                (run,) = (await report(node)).runs
                assert (run.name, len(run.workers), run.away_s) == (name, 1, 0.0)
                pids.add(node.pid)
            assert (await report(node)).runs == []
            assert (tmp_path / name / "logs" / "worker-0.log").exists()
        assert len(pids) == 1
        folder = node.folder
    assert not psutil.pid_exists(node.pid)
    assert is_gone(folder)
    with pytest.raises(LaunchError, match="does not answer"):
        await launcher.start("one", 0)


@pytest.mark.slow
async def test_a_refused_run_disturbs_no_other(tmp_path: Path) -> None:
    async with held_locally(HOSTFILE, logs(tmp_path, "all"), {}) as make:
        launcher = make(logs(tmp_path, "first"), {})
        assert isinstance(launcher, AttachLauncher)
        async with open_nodes(PLAN, launcher, {}, print) as nodes:
            await Owner().tell(launcher.nodes[0], Drain(), Carried)
            with pytest.raises(LaunchError, match="takes no new runs"):
                async with open_nodes(PLAN, make(logs(tmp_path, "second"), {}), {}, print):
                    pass
            assert nodes.alive() == [0]
            (run,) = (await report(launcher.nodes[0])).runs
            assert run.away_s == 0.0


# An orchestrator that says when its nodes are ready, and does nothing more.
_ORCHESTRATOR = """
import asyncio, sys
from pathlib import Path
import msgspec
from agentsim.config.hostfile import Host, Hostfile
from agentsim.launch.attach import AttachLauncher
from agentsim.launch.registry import StayingNode
from agentsim.nodes import open_nodes
from agentsim.plan import RunPlan, place

async def main():
    node = msgspec.json.decode(sys.argv[1], type=StayingNode)
    launcher = AttachLauncher([node], Path(sys.argv[2]), lease_s=1.0)
    plan = RunPlan(place(Hostfile(hosts=[Host(address="one", workers=1)])), (), 1, 0)
    async with open_nodes(plan, launcher, {}, print):
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.slow
async def test_a_run_ends_after_its_lease_when_its_orchestrator_is_killed(
    tmp_path: Path, program: Program
) -> None:
    launcher = LocalLauncher(logs(tmp_path, "node"), stay=Stay("lab", "", 4, 600.0))
    node = await launcher.start("one", 0)
    there = staying(node)
    try:
        arguments = [msgspec.json.encode(there).decode(), str(logs(tmp_path, "first"))]
        process = program.begin_python(_ORCHESTRATOR, *arguments)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (worker,) = (await report(there)).runs[0].workers
        process.send_signal(signal.SIGKILL)
        for _ in range(600):
            if not (found := await report(there)).runs:
                break
        assert found.runs == []
        assert not psutil.pid_exists(worker.pid)
        # The node serves the next run.
        next_ = AttachLauncher([there], logs(tmp_path, "second"))
        async with open_nodes(PLAN, next_, {}, print) as nodes:
            assert nodes.alive() == [0]
    finally:
        await node.stop()


@pytest.mark.slow
async def test_a_node_that_is_killed_is_lost_to_its_run(tmp_path: Path) -> None:
    async with held_locally(HOSTFILE, logs(tmp_path, "all"), {}) as make:
        launcher = make(logs(tmp_path, "first"), {})
        assert isinstance(launcher, AttachLauncher)
        async with open_nodes(PLAN, launcher, {}, print) as nodes:
            psutil.Process(launcher.nodes[0].pid).kill()
            with pytest.raises(PeerLost, match="the node of one has ended"):
                await asyncio.wait_for(nodes.receive(), 20)
