"""Clusters that stay, as their users see them: up, runs, status, down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from whole_runs import table

if TYPE_CHECKING:
    from conftest import Lab  # type: ignore[attr-defined]

pytestmark = pytest.mark.timeout(600)


def test_runs_share_nodes_that_stay(lab: Lab, theory: Path, tmp_path: Path) -> None:
    lab.up("--idle", "10m", workers=1)
    pids = [node["pid"] for node in lab.nodes()]
    # They lead sessions of their own: what ends the shell is not for them.
    assert [os.getsid(pid) for pid in pids] == pids
    for name in ("first", "second"):
        lab.run("run", theory, "--cluster", "lab", "--out", tmp_path / name, "--quiet")
    assert table(tmp_path / "first") == table(tmp_path / "second")
    assert sorted(lab.program.processes("agentsim.node")) == sorted(pids)
    assert lab.program.processes("agentsim.worker") == []
    report = lab.status()
    assert report["healthy"]
    assert [host["runs"] for host in report["hosts"]] == [[]]
    assert "nothing going on" in lab.down()


@pytest.mark.slow
def test_the_same_table_as_without_a_cluster(lab: Lab, theory: Path, tmp_path: Path) -> None:
    lab.up("--idle", "10m", hosts=("one", "two"))
    lab.run("run", theory, "--cluster", "lab", "--out", tmp_path / "lab", "--quiet")
    lab.run("run", theory, "--out", tmp_path / "alone", "--quiet")
    assert table(tmp_path / "lab") == table(tmp_path / "alone")


@pytest.mark.slow
def test_a_model_stays_loaded_between_runs(lab: Lab, embedded: Path, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    lab.up("--idle", "10m")
    servers = []
    for name in ("first", "second"):
        out = tmp_path / name
        lab.run("run", embedded, "--cluster", "lab", "--out", out, "--quiet")
        (server,) = lab.report()["servers"]
        servers.append((server["pid"], server["state"]))
    assert servers[0] == servers[1]
    assert servers[0][1] == "idle"
    assert "1 model server" in lab.down()


@pytest.mark.slow
def test_two_runs_at_once(lab: Lab, embedded: Path, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    lab.up("--idle", "10m", "--slots", "4")
    begun = [
        lab.program.begin("run", embedded, "--cluster", "lab", "--out", tmp_path / name, "--quiet")
        for name in ("first", "second")
    ]
    lab.program.wait_for(lambda: len(lab.report()["runs"]) == 2, timeout_s=120)
    out, _ = lab.run("cluster", "agents", "--name", "lab")
    assert "first" in out
    for process in begun:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    report = lab.report()
    assert report["runs"] == []
    assert len(report["servers"]) == 1


@pytest.mark.slow
def test_a_run_beyond_the_slots_is_refused_with_the_next_step(lab: Lab, theory: Path) -> None:
    lab.up("--idle", "10m", "--slots", "2", workers=3)
    _, err = lab.run("run", theory, "--cluster", "lab", "--quiet", code=1)
    assert "one: the node has 2 worker slots, 2 of them free" in err
    assert "--workers" in err
    lab.run("run", theory, "--cluster", "lab", "--workers", "2", "--quiet")


@pytest.mark.slow
def test_a_run_is_stopped_at_the_nodes_and_ends_in_order(
    lab: Lab, embedded: Path, tmp_path: Path
) -> None:
    pytest.importorskip("xllamacpp")
    lab.up("--idle", "10m")
    out = tmp_path / "long"
    process = lab.program.begin(
        *("run", embedded, "--cluster", "lab", "--out", out, "--quiet"),
        *("--agents", "200", "--rounds", "20"),
    )
    lab.program.wait_for(
        lambda: [run for run in lab.report()["runs"] if run["workers"]], timeout_s=120
    )
    _, refused = lab.run("cluster", "down", code=2)
    assert "cluster lab has runs: long" in refused
    lab.run("cluster", "stop", "long")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "ended by `agentsim cluster stop`" in err
    assert lab.report()["runs"] == []
    assert lab.program.processes("agentsim.worker") == []


@pytest.mark.slow
def test_a_drained_host_is_left_out(lab: Lab, theory: Path, tmp_path: Path) -> None:
    lab.up("--idle", "10m", hosts=("one", "two"))
    lab.run("cluster", "drain", "one")
    lab.run("run", theory, "--cluster", "lab", "--out", tmp_path / "run", "--quiet")
    assert [path.name for path in (tmp_path / "run" / "logs").glob("worker-*.log")]
    lab.run("cluster", "drain", "two")
    _, err = lab.run("run", theory, "--cluster", "lab", "--quiet", code=2)
    assert "all of its hosts are drained" in err
    lab.run("cluster", "drain", "one", "--undo")
    lab.run("cluster", "add", "three")
    report = lab.status()
    assert [host["host"] for host in report["hosts"]] == ["one", "two", "three"]
    assert [host["draining"] for host in report["hosts"]] == [False, True, False]
    lab.run("run", theory, "--cluster", "lab", "--quiet")


@pytest.mark.slow
def test_an_idle_cluster_ends_by_itself(lab: Lab, theory: Path) -> None:
    lab.up("--idle", "1s")
    folder = Path(lab.nodes()[0]["folder"])
    lab.program.assert_nothing_left()
    assert not folder.exists()
    status = lab.status(code=1)
    assert "has ended: after its idle time" in status["hosts"][0]["problem"]
    _, err = lab.run("run", theory, "--cluster", "lab", "--quiet", code=1)
    assert "does not answer" in err
    assert "had ended already" in lab.down()


@pytest.mark.slow
def test_a_node_that_was_killed_leaves_nothing(lab: Lab, embedded: Path) -> None:
    pytest.importorskip("xllamacpp")
    lab.up("--idle", "10m")
    lab.run("run", embedded, "--cluster", "lab", "--quiet")
    os.kill(lab.nodes()[0]["pid"], signal.SIGKILL)
    lab.program.assert_nothing_left()  # the model server goes with its node
    assert "had ended already" in lab.down()


@pytest.mark.slow
def test_what_fails_to_start_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    hostfile = tmp_path / "lab.yaml"
    hostfile.write_text("hosts: [{address: one}]\n")
    tmp, broken = Path(tempfile.mkdtemp(prefix="t")), tmp_path / "broken"  # short, for sockets
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "import sys\nif 'agentsim.node' in sys.orig_argv:\n    sys.exit('not on this machine')\n"
    )
    env = {"TMPDIR": str(tmp), "PYTHONPATH": str(broken)}
    _, err = lab.run("cluster", "up", hostfile, env=env, code=1)
    assert "the node of one did not start" in err
    assert not lab.folder.exists()
    assert list(tmp.iterdir()) == []
    tmp.rmdir()


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_user_of_the_machine_gets_nothing(lab: Lab, theory: Path) -> None:
    lab.up("--idle", "10m")
    socket = lab.nodes()[0]["target"].removeprefix("unix:")
    code = f"""
    import os, socket
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
    try:
        socket.socket(socket.AF_UNIX).connect({socket!r})
    except PermissionError:
        print("refused")
    """
    run = subprocess.run(
        [sys.executable, "-S", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stdout == "refused\n", run.stderr
    lab.run("run", theory, "--cluster", "lab", "--quiet")


@pytest.mark.slow
def test_a_run_whose_program_was_killed_goes_on_where_it_was(
    lab: Lab, scenario: Callable[..., Path], tmp_path: Path
) -> None:
    lab.up("--idle", "10m", "--slots", "2")
    thinking = {"backend": "dummy", "think_s": 0.5}
    file = scenario(name="slow", agents=20, rounds=30, model=thinking)
    out = tmp_path / "run"
    process = lab.program.begin("run", file, "--cluster", "lab", "--out", out, "--quiet")
    lab.program.wait_for(lambda: list(out.glob("actions/*")), timeout_s=120)
    process.kill()
    process.communicate()
    # At once: what the killed one has left there gives way, and so do its slots.
    lab.run("resume", out, "--quiet")
    assert len(table(out)) == 20 * 30
    assert lab.report()["runs"] == []


@pytest.mark.slow
def test_cells_of_a_sweep_are_played_there(
    lab: Lab, scenario: Callable[..., Path], tmp_path: Path
) -> None:
    lab.up("--idle", "10m")
    model = {"backend": "cognitive_hierarchy"}
    file = scenario(name="cells", model=model, sweep={"seed": [1, 2]})
    lab.run("run", file, "--cluster", "lab", "--out", tmp_path / "cells", "--quiet")
    out, _ = lab.run("cluster", "logs", "one")
    assert out.count(" begins") == 2
    assert lab.program.processes("agentsim.node") == [lab.nodes()[0]["pid"]]
