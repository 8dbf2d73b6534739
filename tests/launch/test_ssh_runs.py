"""Whole runs on SSH hosts: the same table as on one machine, however hosts are reached."""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import time

import pytest
from ssh_runs import (
    PATIENCE_S,
    THEORY,
    all_pids,
    contents,
    cpu_s,
    reach_play,
    secrets_in,
    tree,
    what_processes_show,
)
from whole_runs import ROOT, table

THINKS = {"backend": "dummy", "think_s": 4, "jitter_s": 0}


def nothing_left(bed) -> None:
    """No files beside the (empty) working folder; the fixture looks at processes."""
    for host in bed.hosts:
        assert tree(host.tmp) == []
        assert tree(host.home) in ([], [".agentsim"])


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("transport", ["direct", "tunnel"])
def test_ten_thousand_players_over_four_hosts_equal_one_process(
    program, ssh_hosts, transport
) -> None:
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", transport=transport)
    flags = ["--agents", "10000", "--quiet"]
    program.run("run", THEORY, *flags, "--workers", "1", "--out", "one", timeout_s=PATIENCE_S)
    program.run("run", THEORY, *flags, "--hosts", hosts, "--out", "R", timeout_s=PATIENCE_S)
    rows = table(program.folder / "R")
    assert len(rows) == 40_000
    assert rows == table(program.folder / "one")
    hosts_of = json.loads((program.folder / "R" / "manifest.json").read_text())["plan"]["hosts"]
    assert [host["address"] for host in hosts_of] == ssh_hosts.names
    logs = {path.name for path in (program.folder / "R" / "logs").iterdir()}
    assert logs >= {f"{who}-{i}.log" for who in ("node", "worker") for i in range(4)}
    nothing_left(ssh_hosts)


@pytest.mark.quick
@pytest.mark.timeout(200)
def test_hosts_on_loopback_equal_one_process(program, scenario, loopback_hosts) -> None:
    file = scenario(agents=50)
    hosts = loopback_hosts.hostfile(program.folder / "h.yaml")
    program.run("run", file, "--workers", "1", "--out", "one", "--quiet")
    program.run("run", file, "--hosts", hosts, "--out", "R", "--quiet", timeout_s=150)
    assert table(program.folder / "R") == table(program.folder / "one")
    nothing_left(loopback_hosts)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_four_hosts_with_four_workers_start_within_fifteen_cpu_seconds(
    program, scenario, ssh_hosts
) -> None:
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", workers=4)
    before_s = cpu_s(all_pids(ssh_hosts))
    process = program.begin("run", scenario(model=THINKS), "--hosts", hosts, "--out", "R")
    reach_play(program)
    used_s = cpu_s(all_pids(ssh_hosts)) - before_s + cpu_s([process.pid])
    workers = [pid for name in ssh_hosts.names for pid in ssh_hosts.left(name)]
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert len(workers) == 4 * (4 + 1)
    print(f"start of 4 hosts x 4 workers: {used_s:.1f} CPU s")
    assert used_s < 15


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_run_goes_on_when_the_clients_of_ssh_are_killed(program, scenario, ssh_hosts) -> None:
    file = scenario(model=THINKS, agents=40)
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml")
    process = program.begin("run", file, "--hosts", hosts, "--out", "R", "--quiet")
    reach_play(program)
    for pid in program.processes("ssh -T"):
        os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    program.run("run", file, "--out", "one", "--quiet", timeout_s=PATIENCE_S)
    assert table(program.folder / "R") == table(program.folder / "one")
    nothing_left(ssh_hosts)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_tunnel_that_ends_is_made_again(program, scenario, ssh_hosts) -> None:
    file = scenario(model=THINKS, agents=40)
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", transport="tunnel")
    process = program.begin("run", file, "--hosts", hosts, "--out", "R", "--quiet")
    reach_play(program)
    tunnels = program.processes("ssh -T", "-L")
    assert len(tunnels) == 4
    for pid in tunnels:
        os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "given up" not in err
    assert len(table(program.folder / "R")) == 80
    nothing_left(ssh_hosts)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_server_that_lets_no_tunnel_through_is_told_of(program, scenario, ssh_hosts) -> None:
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", transport="tunnel")
    ssh_hosts.configure("node3", "DisableForwarding yes")
    try:
        _, err = program.run(
            *("run", scenario(), "--hosts", hosts, "--out", "R", "--quiet"),
            code=1,
            timeout_s=PATIENCE_S,
        )
    finally:
        ssh_hosts.configure("node3")
    assert "the ssh server of node3 lets no tunnel through" in err
    nothing_left(ssh_hosts)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("transport", ["direct", "tunnel"])
def test_connections_that_are_shared_stay_the_users(
    program, scenario, ssh_hosts, transport
) -> None:
    path = program.folder / "cm"
    sharing = ["ControlMaster=auto", f"ControlPath={path}-%n", "ControlPersist=20"]
    fields = {"ssh": {"options": sharing}, "transport": transport}
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", **fields)
    run = ("run", scenario(), "--hosts", hosts, "--out", "R", "--quiet")
    program.run(*run, timeout_s=PATIENCE_S)
    assert len(table(program.folder / "R")) == 20
    for name in ssh_hosts.names:
        config = ["-F", str(ssh_hosts.config), "-o", f"ControlPath={path}-%n"]
        ended = subprocess.run(
            ["ssh", *config, "-O", "exit", name], capture_output=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
    nothing_left(ssh_hosts)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_hosts_without_ipv6_are_reached(program, scenario, ssh_hosts) -> None:
    for host in ssh_hosts.hosts:
        ssh_hosts.inside(host.name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml")
    program.run("run", scenario(), "--hosts", hosts, "--out", "R", "--quiet", timeout_s=PATIENCE_S)
    assert len(table(program.folder / "R")) == 20


PHASES = {
    "looking at hosts": "agentsim--",
    "starting nodes": "-m agentsim.node",
    "starting workers": "agentsim.worker",
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_a_start_is_interrupted(
    program, scenario, ssh_hosts, phase, number
) -> None:
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", workers=2, minimum_hosts=1)
    process = program.begin("run", scenario(model=THINKS), "--hosts", hosts, "--out", "R")
    there = program.wait_for(lambda: program.processes(PHASES[phase]), PATIENCE_S)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert there
    assert process.returncode == (130 if number == signal.SIGINT else -number), err
    assert "Traceback" not in err
    program.assert_nothing_left(90)
    nothing_left(ssh_hosts)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_log_of_a_killed_worker_is_where_it_is_said_to_be(program, scenario, ssh_hosts) -> None:
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml")
    process = program.begin("run", scenario(model=THINKS), "--hosts", hosts, "--out", "R")
    reach_play(program)
    (victim,) = (pid for pid in ssh_hosts.left("node2") if pid in program.processes("worker"))
    os.kill(victim, signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    (said,) = (line for line in err.splitlines() if "on node2 was ended by signal 9" in line)
    log = said.partition("its log: ")[2].partition(";")[0]
    assert (program.folder / log).exists()
    assert log.endswith("R/logs/worker-1.log")
    nothing_left(ssh_hosts)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("transport", ["direct", "tunnel"])
def test_nothing_is_left_after_the_lease_when_the_orchestrator_is_killed(
    program, scenario, ssh_hosts, transport
) -> None:
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", transport=transport)
    slow = {"backend": "dummy", "think_s": 600}
    process = program.begin("run", scenario(model=slow), "--hosts", hosts, "--out", "R")
    reach_play(program)
    process.kill()
    process.communicate()
    assert all(ssh_hosts.left(name) for name in ssh_hosts.names)
    began_s = time.monotonic()
    program.assert_nothing_left(PATIENCE_S)
    print(f"gone after {time.monotonic() - began_s:.0f} s")
    nothing_left(ssh_hosts)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_shells_noise_setup_and_proxies_do_not_matter(program, scenario, ssh_hosts) -> None:
    for name, shell in (("node1", "fish"), ("node2", "tcsh")):
        ssh_hosts.configure(name, f'ForceCommand exec {shell} -c "$SSH_ORIGINAL_COMMAND"')
    (ssh_hosts["node3"].home / ".bashrc").write_text(
        """echo 'Welcome! {"ready": "soon"}'; echo complaint >&2; printf 'no line end'\n"""
    )
    (ssh_hosts["node4"].home / ".bash_profile").write_text("module() { export LOADED=$2; }\n")
    dead = "http://127.0.0.1:9"
    env = {"PYTHONPATH": str(ROOT), "http_proxy": dead, "https_proxy": dead, "grpc_proxy": dead}
    own = {name: {"env": env} for name in ssh_hosts.names}
    own["node4"]["setup"] = ["module load cuda", 'test "$LOADED" = cuda', "echo noise"]
    own["node3"]["workdir"] = "~/it's a folder"
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", hosts=own)
    proxies = {"http_proxy": dead, "https_proxy": dead, "grpc_proxy": dead}
    try:
        program.run(
            *("run", scenario(), "--hosts", hosts, "--out", "R", "--quiet"),
            timeout_s=PATIENCE_S,
            env=proxies,
        )
    finally:
        for name in ("node1", "node2"):
            ssh_hosts.configure(name)
        (ssh_hosts["node3"].home / ".bashrc").unlink()
        (ssh_hosts["node4"].home / ".bash_profile").unlink()
        for name in ("node3", "node4"):
            for folder in ssh_hosts[name].home.iterdir():
                folder.rmdir()
    assert len(table(program.folder / "R")) == 20


def said_to_a_stranger(address: str, says: bytes, *, tls: bool = False) -> bytes:
    """What a node answers to somebody who has no certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with contextlib.ExitStack() as stack:
        connection = stack.enter_context(socket.create_connection((address, 7000), timeout=10))
        try:
            if tls:
                connection = stack.enter_context(context.wrap_socket(connection))
            connection.sendall(says)
            return connection.recv(1000)
        except (ssl.SSLError, ConnectionError):
            return b""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_secrets_are_on_stdin_alone_and_strangers_get_nothing(program, scenario, ssh_hosts) -> None:
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml")
    process = program.begin(
        "run", scenario(model=THINKS), "--hosts", hosts, "--out", "R", "--quiet"
    )
    reach_play(program)
    shown = what_processes_show([*all_pids(ssh_hosts), *program.processes()])
    assert secrets_in(shown) == []
    for host in ssh_hosts.hosts:
        assert secrets_in(contents(host.tmp)) == []
        folders = [folder for folder in host.tmp.iterdir() if folder.is_dir()]
        assert [oct(folder.stat().st_mode & 0o777) for folder in folders] == ["0o700"]
    for host in ssh_hosts.hosts:
        assert len(said_to_a_stranger(host.address, b"GET / HTTP/1.1\r\n\r\n")) < 10
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        assert said_to_a_stranger(host.address, preface, tls=True) == b""
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert secrets_in(contents(program.folder / "R")) == []
    assert len(table(program.folder / "R")) == 20
