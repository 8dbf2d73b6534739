"""The test bed itself: hosts of their own names, links that can be cut, nothing left behind."""

import subprocess

import pytest
from beds import ssh_hosts as beds
from beds.ssh_hosts import SshHosts


@pytest.mark.slow
def test_hosts_have_their_own_names_homes_and_links(ssh_hosts: SshHosts) -> None:
    for host in ssh_hosts.hosts:
        said = ssh_hosts.ssh(host.name, "hostname; echo $HOME $TMPDIR; hostname -I").split()
        assert said == [host.name, str(host.home), str(host.tmp), host.address]


@pytest.mark.slow
def test_a_host_that_is_cut_off_is_back_when_it_is_healed(ssh_hosts: SshHosts) -> None:
    for fault in (ssh_hosts.cut, ssh_hosts.drop, ssh_hosts.reset):
        fault("node2")
        assert ssh_hosts.ssh("node1", "echo here") == "here\n"
        with pytest.raises((AssertionError, subprocess.TimeoutExpired)):
            ssh_hosts.ssh("node2", "true", timeout_s=3)
        ssh_hosts.heal("node2")
        assert ssh_hosts.ssh("node2", "echo back") == "back\n"


@pytest.mark.slow
def test_what_is_left_on_a_host_is_seen_and_ended(ssh_hosts: SshHosts) -> None:
    ssh_hosts.ssh("node3", "sleep 1000 >/dev/null 2>&1 </dev/null &")
    assert ssh_hosts.commands("node3") == ["sleep 1000"]
    assert ssh_hosts.left("node1") == []
    ssh_hosts.end("node3")
    assert ssh_hosts.left("node3") == []


@pytest.mark.slow
def test_hosts_on_loopback(loopback_hosts: SshHosts) -> None:
    homes = [loopback_hosts.ssh(name, "echo $HOME").strip() for name in loopback_hosts.names]
    assert homes == [str(host.home) for host in loopback_hosts.hosts]


def test_a_bed_leaves_nothing() -> None:
    if why := beds.why_no_namespaces():
        pytest.skip(why)

    def there() -> str:
        namespaces = subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True)
        links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True)
        return namespaces.stdout + links.stdout

    with beds.in_namespaces(1) as bed:
        tag = bed.hosts[0].namespace[:6]
        assert tag in there()
    assert tag not in there()
    assert not bed.folder.exists()
