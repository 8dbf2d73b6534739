"""The clusters of this user that stay: one folder each, for their owner alone.

They lie in `$XDG_STATE_HOME/agentsim/clusters/NAME/` (`~/.local/state` where it is not set):
`cluster.json`, `hosts.yaml` as the hostfile was resolved, `hostfile.yaml` for runs, the cluster's
certificates, `logs/`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import yaml
from msgspec import Struct

from agentsim.config.hostfile import Hostfile
from agentsim.errors import UserError
from agentsim.rpc.certificates import Authority

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FORMAT = 1
_LOCK_TRIES = 5
# Longer than any cluster should stay; certificates that it signs are renewed with each run.
_AUTHORITY_VALID = timedelta(days=400)


class StayingNode(Struct, frozen=True):
    """A node of a cluster that stays.

    Attributes:
        host: its name in the hostfile.
        target: its gRPC target.
        pid: of its program, on its machine.
        log: path of its log, on its machine.
        folder: its private folder there, for sockets.
        local: whether its machine is this one.
        slots: worker processes that it may have at once; None: any number.
    """

    host: str
    target: str
    pid: int
    log: str
    folder: str
    local: bool
    slots: int | None


class Staying(Struct, frozen=True):
    """What is known of a cluster that stays.

    Attributes:
        version: of agentsim.
        started: UTC, ISO 8601.
        nodes: in the order of the hostfile.
        drained: hosts that take no new runs.
    """

    name: str
    version: str
    started: str
    launcher: str
    idle_s: float
    nodes: list[StayingNode]
    drained: list[str] = []
    format: int = _FORMAT


@dataclass(frozen=True, slots=True)
class Registry:
    """The folder of one cluster."""

    path: Path

    @property
    def name(self) -> str:
        """Of the cluster."""
        return self.path.name

    @property
    def hostfile(self) -> Path:
        """For runs: with the hosts that take new ones."""
        return self.path / "hostfile.yaml"

    @property
    def logs(self) -> Path:
        """Of the nodes that are on this machine."""
        return self.path / "logs"

    def read(self) -> Staying:
        """What is known of the cluster.

        Raises:
            UserError: there is no such cluster, or its file cannot be read.
        """
        file = self.path / "cluster.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=Staying)
        except FileNotFoundError:
            raise UserError(_unknown(self.name)) from None
        except (OSError, msgspec.DecodeError) as error:
            raise UserError(
                f"{file}: cannot be read: {error}. What the cluster started may still run"
            ) from error

    def write(self, staying: Staying) -> None:
        """Keep what is known of the cluster."""
        _write(self.path / "cluster.json", msgspec.json.format(msgspec.json.encode(staying)))

    def write_hosts(self, hostfile: Hostfile, drained: Collection[str] = ()) -> None:
        """Keep the hostfile, and write the one for runs."""
        self._write_yaml(self.path / "hosts.yaml", hostfile)
        open_ = [host for host in hostfile.hosts if host.address not in drained]
        if not open_:
            self.hostfile.unlink(missing_ok=True)
            return
        enough = hostfile.minimum_hosts and min(hostfile.minimum_hosts, len(open_))
        changes = {"hosts": open_, "minimum_hosts": enough, "cluster": self.name}
        self._write_yaml(self.hostfile, hostfile.model_copy(update=changes))

    def read_hosts(self) -> Hostfile:
        """The hostfile, as `write_hosts` was given it.

        Raises:
            UserError: it cannot be read.
        """
        path = self.path / "hosts.yaml"
        try:
            return Hostfile.model_validate(yaml.safe_load(path.read_bytes()))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise UserError(f"{path}: cannot be read: {error}") from error

    def _write_yaml(self, path: Path, hostfile: Hostfile) -> None:
        data = hostfile.model_dump(mode="json", exclude_defaults=True)
        _write(path, yaml.safe_dump(data, sort_keys=False).encode())

    def make_authority(self) -> Authority:
        """A new authority for the cluster; its key is kept here and nowhere else."""
        authority = Authority.create(self.name, _AUTHORITY_VALID)
        _write(self.path / "ca.pem", authority.certificate)
        _write(self.path / "ca.key", authority.key)
        return authority

    def authority(self) -> Authority | None:
        """What signs the certificates of the cluster; None when all of it is on this machine.

        Raises:
            UserError: its files cannot be read.
        """
        certificate, key = self.path / "ca.pem", self.path / "ca.key"
        try:
            return Authority.load(certificate.read_bytes(), key.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise UserError(f"{self.path}: its certificates cannot be read: {error}") from error

    def heard(self) -> dict[str, str]:
        """When each host has answered last: UTC, ISO 8601; hosts that never did are missing."""
        try:
            return msgspec.json.decode((self.path / "heard.json").read_bytes(), type=dict[str, str])
        except (OSError, msgspec.DecodeError):
            return {}

    def hear(self, hosts: Iterable[str]) -> None:
        """Hosts have answered just now."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        heard = self.heard() | dict.fromkeys(hosts, now)
        with contextlib.suppress(
            OSError
        ):  # a full disk is no reason to fail, nor is a cluster's end
            _write(self.path / "heard.json", msgspec.json.encode(heard))

    def remove(self) -> None:
        """Forget the cluster."""
        shutil.rmtree(self.path, ignore_errors=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the cluster: nobody else starts, changes or ends it meanwhile.

        Raises:
            UserError: somebody else does.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = self.path.parent / f".{self.name}.lock"
        for _ in range(_LOCK_TRIES):
            with lock.open("a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    break
                if not _is_same(lock, file.fileno()):
                    continue  # whoever had it has taken it away
                try:
                    yield
                finally:
                    lock.unlink(missing_ok=True)
                return
        raise UserError(f"cluster {self.name}: another command is starting, changing or ending it")


def registry(name: str) -> Registry:
    """The folder of a cluster, whether it is there or not.

    Raises:
        UserError: that can be no cluster's name.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name!r} is no name for a cluster: letters, digits, dots, dashes and underscores, "
            "64 at most, a letter or digit first"
        )
    return Registry(_root() / name)


def create(name: str) -> Registry:
    """The folder of a new cluster; whoever calls this holds the cluster's lock.

    Raises:
        UserError: there is one of that name, or that can be no name.
    """
    new = registry(name)
    try:
        new.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if new.path.is_dir() and not (new.path / "cluster.json").exists():
            new.remove()  # a start that was killed: what it had started has ended with it
        new.path.mkdir(mode=0o700)
    except FileExistsError:
        raise UserError(
            f"there is a cluster {name} already; see `agentsim cluster status --name {name}`, or "
            f"end it: agentsim cluster down --name {name}"
        ) from None
    except OSError as error:
        raise UserError(f"{new.path}: cannot be made: {error.strerror}") from error
    new.logs.mkdir(mode=0o700)
    return new


def hostfile_of(name: str) -> Path:
    """The hostfile for runs on a cluster.

    Raises:
        UserError: there is no such cluster, or all of its hosts are drained.
    """
    known = registry(name)
    known.read()
    if not known.hostfile.exists():
        raise UserError(
            f"cluster {name} takes no new runs: all of its hosts are drained; to change that: "
            f"agentsim cluster drain HOST --undo --name {name}"
        )
    return known.hostfile


def names() -> list[str]:
    """Of all clusters of this user."""
    root = _root()
    if not root.is_dir():
        return []
    return sorted(path.name for path in root.iterdir() if (path / "cluster.json").is_file())


def _root() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "agentsim" / "clusters"


def _is_same(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except FileNotFoundError:
        return False


def _unknown(name: str) -> str:
    known = names()
    there = f"there are: {', '.join(known)}" if known else "there are none"
    return f"there is no cluster {name}; {there}. To start one: agentsim cluster up HOSTFILE"


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, and for the owner's eyes."""
    handle, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # 0600
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(new).replace(path)
