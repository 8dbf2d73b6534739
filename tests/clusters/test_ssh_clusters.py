"""Clusters that stay on hosts that ssh reaches."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from beds.ssh_hosts import SshHosts
from whole_runs import table

if TYPE_CHECKING:
    from conftest import Lab  # type: ignore[attr-defined]

pytestmark = pytest.mark.timeout(600)


def folders(bed: SshHosts) -> list[Path]:
    """What nodes have left in the temporary directories of all hosts."""
    return [path for host in bed.hosts for path in host.tmp.iterdir()]


@pytest.mark.slow
def test_nodes_stay_on_hosts_and_leave_nothing(
    lab: Lab, ssh_hosts: SshHosts, theory: Path, tmp_path: Path
) -> None:
    hostfile = ssh_hosts.hostfile(tmp_path / "lab.yaml")
    lab.run("cluster", "up", hostfile, "--idle", "10m")
    # Nothing on this machine holds them.
    assert lab.program.processes("ssh") == []
    for name in ("first", "second"):
        lab.run(*("run", theory, "--cluster", "lab", "--out", tmp_path / name, "--quiet"))
    assert table(tmp_path / "first") == table(tmp_path / "second")
    workers = [f"worker-{worker}.log" for worker in range(4)]
    assert [path.name for path in sorted((tmp_path / "first" / "logs").glob("w*"))] == workers
    report = lab.status()
    assert [host["hostname"] for host in report["hosts"]] == ssh_hosts.names
    assert {len(host["runs"]) for host in report["hosts"]} == {0}
    out, _ = lab.run("cluster", "logs", "node1")
    assert "begins" in out
    pids = [host["pid"] for host in report["hosts"]]
    assert sorted(pid for name in ssh_hosts.names for pid in ssh_hosts.left(name)) == sorted(pids)
    lab.run("cluster", "down")
    lab.program.wait_for(lambda: not any(map(ssh_hosts.left, ssh_hosts.names)))
    assert folders(ssh_hosts) == []
    assert not lab.folder.exists()


@pytest.mark.slow
def test_a_host_that_is_cut_off_can_be_ended_later(
    lab: Lab, ssh_hosts: SshHosts, tmp_path: Path
) -> None:
    hosts = {name: {} for name in ("node1", "node2", "node3")}
    ssh = {"connect_timeout_s": 5}
    hostfile = ssh_hosts.hostfile(tmp_path / "lab.yaml", hosts=hosts, ssh=ssh)
    lab.run("cluster", "up", hostfile, "--idle", "10m")
    secrets = {path.name: path.stat().st_mode & 0o777 for path in lab.folder.glob("ca.*")}
    assert secrets == {"ca.pem": 0o600, "ca.key": 0o600}
    ssh_hosts.drop("node2")
    # A node that is stopped does not answer either; ssh ends it.
    frozen = next(node["pid"] for node in lab.nodes() if node["host"] == "node3")
    os.kill(frozen, signal.SIGSTOP)
    out, err = lab.run("cluster", "down", "--yes", code=1)
    assert "node1: ended, with nothing going on" in out
    assert "node3: did not answer; it had ended, or was ended through ssh" in out
    assert "node2: may still run" in err
    assert [node["host"] for node in lab.nodes()] == ["node2"]
    ssh_hosts.heal()
    lab.run("cluster", "down")
    assert folders(ssh_hosts) == []


@pytest.mark.slow
def test_a_cut_of_seconds_ends_no_run(
    lab: Lab, ssh_hosts: SshHosts, scenario: Callable[..., Path], tmp_path: Path
) -> None:
    hostfile = ssh_hosts.hostfile(tmp_path / "lab.yaml", hosts={"node1": {}, "node2": {}})
    lab.run("cluster", "up", hostfile, "--idle", "10m")
    thinking = {"backend": "dummy", "think_s": 1.0}
    file = scenario(name="slow", agents=20, rounds=20, model=thinking)
    out = tmp_path / "run"
    process = lab.program.begin("run", file, "--cluster", "lab", "--out", out, "--quiet")
    lab.program.wait_for(lambda: list(out.glob("actions/*")), timeout_s=120)
    ssh_hosts.drop("node2")
    time.sleep(8)  # how long the cut lasts
    ssh_hosts.heal()
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert len(table(out)) == 20 * 20
    report = lab.status()
    assert [host["runs"] for host in report["hosts"]] == [[], []]
    lab.run("cluster", "down")
