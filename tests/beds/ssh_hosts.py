"""Real SSH hosts on this machine: an sshd each, in a network namespace of its own or on loopback.

In namespaces (root) each host has its own name, address and link, which can be cut. On loopback
(anybody) they share name and network. Hosts have their own home and temporary directory in either,
and share processes and the rest of the disk. Names and subnets differ from bed to bed, and a bed
ends only what it started.
"""

from __future__ import annotations

import contextlib
import errno
import getpass
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
_SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")

_SSHD_CONFIG = """\
ListenAddress {listen}
HostKey {folder}/hostkey
PidFile {folder}/sshd.pid
AuthorizedKeysFile {bed}/authorized_keys
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
StrictModes no
MaxSessions 64
MaxStartups 64
PrintMotd no
PrintLastLog no
AcceptEnv AGENTSIM_*
SetEnv HOME={folder}/home TMPDIR={folder}/tmp
Subsystem sftp internal-sftp
ClientAliveInterval 2
ClientAliveCountMax 2
LogLevel VERBOSE
"""
_SSH_CONFIG = """
Host node*
  User {user}
  IdentityFile {bed}/id
  IdentitiesOnly yes
  UserKnownHostsFile {bed}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  SendEnv AGENTSIM_TEST_MARK
  LogLevel ERROR
"""


@dataclass(slots=True)
class Host:
    """One host of a bed.

    Attributes:
        name: what `ssh` calls it, and what it calls itself in a namespace.
        address: IP address.
        port: of its sshd.
        folder: with its home, temporary directory, key, configuration and log of sshd.
        namespace: empty on loopback.
        more: further lines of its sshd's configuration.
    """

    name: str
    address: str
    port: int
    folder: Path
    namespace: str = ""
    more: list[str] = field(default_factory=list)

    @property
    def home(self) -> Path:
        """Of who logs in."""
        return self.folder / "home"

    @property
    def tmp(self) -> Path:
        """Temporary directory of who logs in."""
        return self.folder / "tmp"

    @property
    def sshd(self) -> int:
        """Process id of its sshd."""
        return int((self.folder / "sshd.pid").read_text())


class SshHosts:
    """A bed. Use `in_namespaces` or `on_loopback`.

    Attributes:
        folder: of the whole bed.
        hosts: in order; `node1` is the first.
    """

    def __init__(self, count: int, *, namespaces: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="asb"))
        self.hosts: list[Host] = []
        self._namespaces = namespaces
        self._tag = secrets.token_hex(2)
        self._bridge = f"as{self._tag}br"
        self._net = ""
        try:
            self._start(count)
        except BaseException:
            self.close()
            raise

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    @property
    def config(self) -> Path:
        """The configuration for `ssh -F`."""
        return self.folder / "ssh_config"

    @property
    def names(self) -> list[str]:
        """Of all hosts."""
        return [host.name for host in self.hosts]

    def hostfile(self, path: Path, *, workers: int = 1, **fields: Any) -> Path:
        """Write a hostfile for all hosts, on which this checkout's agentsim runs.

        Args:
            path: where.
            workers: of each host.
            fields: of the file; `hosts` is a map from names to fields of a host.
        """
        own = fields.pop("hosts", {name: {} for name in self.names})
        ssh = {"config": str(self.config), "connect_timeout_s": 20, **fields.pop("ssh", {})}
        hosts = [
            {
                "address": name,
                "workers": workers,
                "env": {"PYTHONPATH": str(ROOT)},
                **({} if self._namespaces else {"port": 0}),
                **own[name],
            }
            for name in own
        ]
        contents = {"launcher": "ssh", "hosts": hosts, "ssh": ssh, **fields}
        path.write_text(yaml.safe_dump(contents, sort_keys=False))
        return path

    def ssh(self, name: str, command: str, timeout_s: float = 30) -> str:
        """Run a command on a host, and give what it wrote to stdout."""
        done = subprocess.run(
            ["ssh", "-F", str(self.config), "-o", "BatchMode=yes", name, command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def inside(self, name: str, *command: str) -> None:
        """Run a command in a host's namespace, without ssh."""
        _run("ip", "netns", "exec", self[name].namespace, *command)

    def configure(self, name: str, *lines: str) -> None:
        """Start a host's sshd anew with further lines of configuration, which come first."""
        host = self[name]
        host.more = list(lines)
        _end([host.sshd])
        self._begin(host)

    # --- processes

    def left(self, name: str, *, sshd: bool = False) -> list[int]:
        """Processes in a host's namespace.

        Args:
            sshd: whether its sshd and those who log in or out count too.
        """
        host = self[name]
        assert host.namespace, "hosts on loopback have no processes of their own"
        found = _output("ip", "netns", "pids", host.namespace).split()
        return [pid for pid in map(int, found) if sshd or not _is_sshd(pid)]

    def commands(self, name: str) -> list[str]:
        """The command lines of these processes."""
        return [_command(pid) for pid in self.left(name)]

    def end(self, name: str) -> None:
        """End these processes, whatever they are."""
        _end(self.left(name))

    # --- faults; only in namespaces

    def cut(self, name: str) -> None:
        """Take a host's link down: others see it gone."""
        _run("ip", "-n", self[name].namespace, "link", "set", "eth0", "down")

    def drop(self, name: str, *, ports: str = "0-65535") -> None:
        """Let all that comes to a host for these TCP ports, or for any, vanish in silence."""
        which = "" if ports == "0-65535" else f"tcp dport {ports} "
        self._filter(name, f"{which}drop")

    def lose(self, name: str, percent: int) -> None:
        """Let a share of all packets that come to a host vanish."""
        self._filter(name, f"numgen random mod 100 < {percent} counter drop")

    def slow(self, name: str, rate: str = "1mbit") -> None:
        """Let no more than so much leave a host in a second."""
        shape = ("root", "tbf", "rate", rate, "burst", "4kb", "latency", "2s")
        _run("tc", "-n", self[name].namespace, "qdisc", "add", "dev", "eth0", *shape)

    def reset(self, name: str) -> None:
        """Answer all TCP that comes to a host with a reset."""
        self._filter(name, "meta l4proto tcp reject with tcp reset")

    def heal(self, name: str | None = None) -> None:
        """Undo `cut`, `drop` and `reset`, of one host or of all."""
        for host in self.hosts if name is None else [self[name]]:
            if host.namespace:
                _run("ip", "-n", host.namespace, "link", "set", "eth0", "up")
                _run("ip", "netns", "exec", host.namespace, "nft", "flush", "ruleset")

    def reached(self, name: str) -> bool:
        """Whether packets come to a host, and back.

        A link is up some time after it is told to be, the later the more a machine has to do.
        """
        with socket.socket() as probe:
            probe.settimeout(1)
            # Nobody listens there; the host itself says so.
            return probe.connect_ex((self[name].address, 1)) == errno.ECONNREFUSED

    def _filter(self, name: str, rule: str) -> None:
        rules = (
            "add table inet faults; flush table inet faults; add chain inet faults in "
            "{ type filter hook input priority 0; }; " + f"add rule inet faults in {rule}"
        )
        _run("ip", "netns", "exec", self[name].namespace, "nft", rules)

    # --- up and down

    def _start(self, count: int) -> None:
        key = self.folder / "id"
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        (self.folder / "authorized_keys").write_text(Path(f"{key}.pub").read_text())
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # sshd does not start without it
        if self._namespaces:
            self._make_bridge()
        for number in range(1, count + 1):
            self.hosts.append(self._make(number))
        known, config = [], []
        for host in self.hosts:
            self._begin(host)
            kind, public = (host.folder / "hostkey.pub").read_text().split()[:2]
            known.append(f"{host.name} {kind} {public}\n")
            config.append(
                f"Host {host.name}\n  HostName {host.address}\n  Port {host.port}\n"
                f"  HostKeyAlias {host.name}\n"
            )
        (self.folder / "known_hosts").write_text("".join(known))
        common = _SSH_CONFIG.format(user=getpass.getuser(), bed=self.folder)
        self.config.write_text("".join(config) + common)

    def _make_bridge(self) -> None:
        _run("ip", "link", "add", self._bridge, "type", "bridge")
        for _ in range(100):
            self._net = f"10.{random.SystemRandom().randrange(64, 250)}." + str(
                random.SystemRandom().randrange(250)
            )
            if f" {self._net}." not in _output("ip", "-o", "-4", "addr"):
                break
        _run("ip", "addr", "add", f"{self._net}.254/24", "dev", self._bridge)
        _run("ip", "link", "set", self._bridge, "up")

    def _make(self, number: int) -> Host:
        """A host without its sshd."""
        folder = self.folder / f"node{number}"
        for part in ("home", "tmp"):
            (folder / part).mkdir(parents=True)
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "hostkey"))
        if not self._namespaces:
            return Host(f"node{number}", "127.0.0.1", _free_port(), folder)
        name, outside = f"as{self._tag}n{number}", f"as{self._tag}v{number}"
        address = f"{self._net}.{number}"
        _run("ip", "netns", "add", name)
        _run(*f"ip link add {outside} type veth peer name eth0 netns {name}".split())
        _run("ip", "link", "set", outside, "master", self._bridge, "up")
        _run("ip", "-n", name, "link", "set", "lo", "up")
        _run("ip", "-n", name, "link", "set", "eth0", "up")
        _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        return Host(f"node{number}", address, 22, folder, name)

    def _begin(self, host: Host) -> None:
        """Start a host's sshd, and wait until it listens."""
        text = _SSHD_CONFIG.format(
            listen=f"{host.address}:{host.port}", folder=host.folder, bed=self.folder
        )
        config = host.folder / "sshd_config"
        config.write_text("".join(f"{line}\n" for line in host.more) + text)
        (host.folder / "sshd.pid").unlink(missing_ok=True)
        command = [str(_SSHD), "-f", str(config), "-E", str(host.folder / "sshd.log")]
        if host.namespace:
            # A name of its own needs a UTS namespace of its own.
            named = f'hostname {host.name}; exec "$@"'
            inside = ["unshare", "--uts", "sh", "-c", named, "sh", *command]
            command = ["ip", "netns", "exec", host.namespace, *inside]
        _run(*command)
        _until((host.folder / "sshd.pid").exists)

    def close(self) -> None:
        """End what the bed has started, and take it away."""
        pids = []
        for host in self.hosts:
            with contextlib.suppress(OSError, ValueError):
                pids.append(host.sshd)
            if host.namespace:
                pids += map(int, _output("ip", "netns", "pids", host.namespace).split())
        _end(pids)
        for host in self.hosts:
            if host.namespace:
                _run("ip", "netns", "del", host.namespace)
        if self._namespaces:
            subprocess.run(["ip", "link", "del", self._bridge], capture_output=True, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def in_namespaces(count: int = 4) -> Iterator[SshHosts]:
    """A bed of hosts with own names and links. See `why_no_namespaces`."""
    bed = SshHosts(count, namespaces=True)
    try:
        yield bed
    finally:
        bed.close()


@contextlib.contextmanager
def on_loopback(count: int = 2) -> Iterator[SshHosts]:
    """A bed of hosts on 127.0.0.1, for whoever runs it."""
    bed = SshHosts(count, namespaces=False)
    try:
        yield bed
    finally:
        bed.close()


def why_no_sshd() -> str:
    """Why there can be no bed at all; empty when there can."""
    if _SSHD is None or shutil.which("ssh") is None:
        return "sshd or ssh is not installed; tests/install_beds installs them"
    return ""


def why_no_namespaces() -> str:
    """Why there can be no bed in namespaces; empty when there can."""
    if why := why_no_sshd():
        return why
    if os.geteuid() != 0:
        return "hosts in network namespaces need root"
    if shutil.which("ip") is None:
        return "iproute2 is not installed; tests/install_beds installs it"
    name = f"as{secrets.token_hex(3)}"
    tried = subprocess.run(
        ["ip", "netns", "add", name], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        return f"`ip netns add` fails here: {tried.stderr.strip()}"
    _run("ip", "netns", "del", name)
    return ""


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _free_port() -> int:
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        port: int = here.getsockname()[1]
        return port


def _until(condition: Any, timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "a bed did not come up or go down in time"
        time.sleep(0.01)


def _end(pids: list[int]) -> None:
    """End these processes, and wait until they have ended."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _until(lambda: not any(_runs(pid) for pid in pids))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _is_sshd(pid: int) -> bool:
    command = _command(pid)
    return command == "" or command.startswith("sshd:") or f"{_SSHD} " in command


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""
