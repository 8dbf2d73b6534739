"""Before a run starts, it is said of all hosts at once what is wrong with them."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from beds.ssh_hosts import SshHosts
from ssh_runs import PATIENCE_S, tree
from whole_runs import ROOT, table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def said(program, scenario, hosts, code: int) -> dict[str, str]:
    """What is said of each host of a run that does not start."""
    _, err = program.run(
        *("run", scenario(), "--hosts", hosts, "--out", "R", "--quiet"),
        code=code,
        timeout_s=PATIENCE_S,
    )
    head, *lines = err.strip().splitlines()
    assert "hosts cannot be used" in head
    assert "nothing was started" in head
    assert "Traceback" not in err
    assert not (program.folder / "R").exists()
    return dict(line.strip().split(": ", 1) for line in lines)


@pytest.fixture
def full_disk(tmp_path: Path, ssh_hosts: SshHosts) -> Iterator[Path]:
    """A folder on a disk without room, on node3."""
    folder = tmp_path / "full"
    folder.mkdir()
    # `ip netns exec` has given the host mounts of its own.
    there = ["nsenter", "-t", str(ssh_hosts["node3"].sshd), "-m"]
    mount = [*there, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a small disk here")
    yield folder
    subprocess.run([*there, "umount", str(folder)], check=True)


def test_hosts_that_cannot_be_logged_in_to(program, scenario, ssh_hosts) -> None:
    one, _, three, four = (ssh_hosts.folder / "known_hosts").read_text().splitlines()
    changed = f"node1 {' '.join(four.split()[1:])}"
    known = program.folder / "known_hosts"
    known.write_text("\n".join([changed, three, four, ""]))
    assert one != changed
    ssh_hosts.configure("node3", "AuthorizedKeysFile /dev/null")
    ssh_hosts.cut("node4")
    hosts = ssh_hosts.hostfile(
        program.folder / "h.yaml",
        ssh={"options": [f"UserKnownHostsFile={known}"], "connect_timeout_s": 5},
    )
    try:
        found = said(program, scenario, hosts, code=1)
    finally:
        ssh_hosts.configure("node3")
    assert list(found) == ssh_hosts.names
    assert "its host key has changed" in found["node1"]
    assert "its host key is not known here; log in once with" in found["node2"]
    assert "it does not let us in" in found["node3"]
    assert "ssh-copy-id" in found["node3"]
    assert "it cannot be reached" in found["node4"]


def test_hosts_that_lack_something(program, scenario, ssh_hosts) -> None:
    other = program.folder / "other" / "agentsim"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    (other / "version.py").write_text("__version__ = '0.0.1'\n")
    clock = program.folder / "clock"
    clock.mkdir()
    (clock / "sitecustomize.py").write_text(
        "import time\nreal = time.time\ntime.time = lambda: real() - 86_400 * 3\n"
    )
    own = {
        "node1": {"python": "/nowhere/python"},
        "node2": {"env": {"PYTHONPATH": str(other.parent)}},
        "node3": {"env": {"PYTHONPATH": f"{clock}:{ROOT}"}},
        "node4": {"gpus": 64},
    }
    found = said(program, scenario, ssh_hosts.hostfile(program.folder / "h.yaml", hosts=own), 1)
    assert "there is no /nowhere/python; name one by `python`" in found["node1"]
    assert "agentsim there is 0.0.1, here it is" in found["node2"]
    assert "agentsim cluster install" in found["node2"]
    assert "its clock is 3 days behind" in found["node3"]
    assert "GPUs, and the hostfile says 64" in found["node4"]


def test_hosts_that_are_closed_or_full(program, scenario, ssh_hosts, full_disk) -> None:
    ssh_hosts.drop("node2", ports="7000-7099")
    env = {"PYTHONPATH": str(ROOT), "TMPDIR": str(full_disk)}
    own = {
        "node1": {"setup": ["true", "echo no such module >&2; false"]},
        "node2": {},
        "node3": {"env": env},
        "node4": {"address": "nowhere.invalid"},
    }
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", hosts=own, ssh={"connect_timeout_s": 5})
    found = said(program, scenario, hosts, 1)
    assert "the setup line `echo no such module >&2; false` failed with status 1" in found["node1"]
    assert f"port 7000 at {ssh_hosts['node2'].address} is closed to us" in found["node2"]
    assert "transport: tunnel" in found["node2"]
    assert f"nothing can be written to {full_disk} (No space left on device)" in found["node3"]
    assert "there is no such host" in found["nowhere.invalid"]
    assert all(tree(host.tmp) == [] for host in ssh_hosts.hosts)


def test_hosts_whose_ports_are_others(program, scenario, ssh_hosts) -> None:
    os.kill(ssh_hosts["node3"].sshd, signal.SIGKILL)
    own = {
        "node1": {"port": 22},
        "node2": {"advertise": ssh_hosts["node4"].address},
        "node3": {},
        "node4": {},
    }
    try:
        hosts = ssh_hosts.hostfile(program.folder / "h.yaml", hosts=own)
        found = said(program, scenario, hosts, 1)
    finally:
        ssh_hosts.configure("node3")
    assert "no port of 22 can be listened on (Address already in use)" in found["node1"]
    # Whether the other one listens there just then is up to chance.
    assert "another machine answers" in found["node2"] or "is closed to us" in found["node2"]
    assert "its ssh server does not answer" in found["node3"]
    assert "node4" not in found


def test_what_is_the_users_mistake_at_all_hosts_exits_so(program, scenario, ssh_hosts) -> None:
    own = {name: {"python": "/nowhere/python"} for name in ssh_hosts.names}
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", hosts=own)
    assert len(said(program, scenario, hosts, 2)) == 4
    ssh = {"options": ["NoSuchOption=yes"]}
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", ssh=ssh)
    assert "ssh does not take its settings" in said(program, scenario, hosts, 2)["node1"]


def test_a_run_starts_on_fewer_hosts_when_it_may(program, scenario, ssh_hosts) -> None:
    ssh_hosts.cut("node2")
    file = scenario()
    fields = {"ssh": {"connect_timeout_s": 5}}
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", minimum_hosts=4, **fields)
    assert list(said(program, scenario, hosts, 1)) == ["node2"]
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", minimum_hosts=3, **fields)
    _, err = program.run("run", file, "--hosts", hosts, "--out", "R", timeout_s=PATIENCE_S)
    assert "goes without node2: it cannot be reached" in err
    assert "starting 3 workers on node1, node3, node4" in err
    program.run("run", file, "--out", "one", "--quiet")
    assert table(program.folder / "R") == table(program.folder / "one")
