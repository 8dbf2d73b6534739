"""Looks at all hosts before anything is started, and says of all at once what is wrong."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec

from agentsim.config.hostfile import Host, Hostfile
from agentsim.errors import AgentsimError, LaunchError, UserError
from agentsim.launch import far
from agentsim.launch.attach import answering
from agentsim.launch.connection import Connection, Problem
from agentsim.launch.far.probe import digest
from agentsim.version import __version__

# What a node imports that is not Python's own; one that is missing is the commonest surprise.
_MODULES = ("aiohttp", "cryptography", "grpc", "msgspec", "numpy", "psutil", "pydantic", "uvloop")
_PYTHON = (3, 11)
_LEAST_FREE_BYTES = 200 * 2**20
_MOST_SKEW_S = 600.0
# Beside connecting: what a login shell and a small program take, on a loaded machine too.
_PROBE_S = 45.0


class Facts(msgspec.Struct, frozen=True):
    """What a host says of itself. See `far/probe.py`.

    Attributes:
        host: its own name.
        python: version.
        executable: of Python.
        version: of agentsim; empty when it is not there.
        digest: of its code.
        missing: modules that a node needs and that are not there.
        time_s: since the epoch, by its clock.
        folders: free bytes (-1: unknown) and why nothing can be written, by path.
        gpus: how many.
        port: where it listens; 0 when it was not asked to, or cannot.
        no_port: why it cannot.
    """

    host: str
    python: tuple[int, int, int]
    executable: str
    version: str
    digest: str
    missing: list[str]
    time_s: float
    folders: dict[str, tuple[int, str]]
    gpus: int
    port: int
    no_port: str


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found at one host.

    Attributes:
        facts: None when it did not come to that.
        problems: why it cannot be used; none when it can.
    """

    host: Host
    facts: Facts | None
    problems: tuple[Problem, ...]


class Watcher(Protocol):
    """Is told how the start goes."""

    def stage(self, name: str) -> None:
        """What is done now."""

    def notice(self, message: str) -> None:
        """What the user should know."""


async def usable(hostfile: Hostfile, watcher: Watcher) -> Hostfile:
    """The hostfile with the hosts that can be used; nothing is left running on any.

    Args:
        hostfile: hosts that the local launcher starts are not looked at.
        watcher: is told of hosts that are left out.

    Raises:
        UserError: something that the user gave is wrong, at all hosts that fail.
        LaunchError: too few hosts can be used; says of each what is wrong with it.
    """
    if hostfile.cluster is not None:
        return await answering(hostfile, watcher.notice)
    if hostfile.launcher != "ssh":
        return hostfile
    count = len(hostfile.hosts)
    watcher.stage(f"looking at {count} host{'s' if count > 1 else ''}")
    looked = await look(hostfile)
    good = [item.host for item in looked if not item.problems]
    bad = [item for item in looked if item.problems]
    if not bad:
        return hostfile
    least = hostfile.minimum_hosts or len(looked)
    if len(good) < least:
        raise _error(bad, len(looked), hostfile.minimum_hosts)
    for item in bad:
        watcher.notice(f"goes without {item.host.address}: {_in_words(item)}")
    return hostfile.model_copy(update={"hosts": good})


async def look(hostfile: Hostfile) -> list[Looked]:
    """Look at all hosts, as many at a time as the hostfile says."""
    gate = asyncio.Semaphore(hostfile.ssh.parallel)

    async def one(host: Host) -> Looked:
        async with gate:
            return await _look(hostfile, host)

    return list(await asyncio.gather(*(one(host) for host in hostfile.hosts)))


async def _look(hostfile: Hostfile, host: Host) -> Looked:
    connection = Connection(hostfile.ssh, host)
    token = secrets.token_hex(8)
    wait_s = hostfile.ssh.connect_timeout_s
    direct = hostfile.transport == "direct"
    asked = {
        "modules": _MODULES,
        "gpus": host.gpus or 0,
        "ports": port_range(host) if direct else [],
        "token": token,
        "wait_s": wait_s + _PROBE_S,
    }
    began_s = time.time()
    async with connection.call(far.program("probe", asked)) as call:
        status: int | None = None
        try:
            async with asyncio.timeout(wait_s + _PROBE_S):
                said = await call.line()
                if said is None:
                    status = await call.status()
        except TimeoutError:
            said = None
        if said is None:
            return Looked(host, None, (connection.problem(status, call.err()),))
        try:
            facts = msgspec.json.decode(said, type=Facts)
        except msgspec.DecodeError as error:
            return Looked(host, None, (Problem(f"its answer cannot be read: {error}"),))
        problems = list(judge(host, facts, began_s, time.time()))
        if facts.port:
            closed = await _knock(connection, facts.port, token, wait_s)
            problems += [closed] if closed else []
        call.end_stdin()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(call.status(), 5.0)
    return Looked(host, facts, tuple(problems))


def port_range(host: Host) -> tuple[int, int]:
    """First and last port that a host's node may listen on; 0 is any."""
    first, _, last = str(host.port).partition("-")
    return int(first), int(last or first)


def judge(host: Host, facts: Facts, began_s: float, ended_s: float) -> Iterator[Problem]:
    """What is wrong with a host by what it says of itself.

    Args:
        began_s, ended_s: since the epoch by our clock: before it was asked, after it has answered.
    """
    python = ".".join(map(str, facts.python))
    install = "run `agentsim cluster install` with this hostfile"
    if facts.python[:2] < _PYTHON:
        yield Problem(
            f"{facts.executable} is Python {python}, and agentsim needs "
            f"{_PYTHON[0]}.{_PYTHON[1]} or newer; name one by `python`",
            users=True,
        )
    elif not facts.version:
        yield Problem(f"{facts.executable} has no agentsim; {install}", users=True)
    elif facts.version != __version__:
        yield Problem(
            f"agentsim there is {facts.version}, here it is {__version__}; {install}", users=True
        )
    elif facts.digest != digest():
        yield Problem(
            f"agentsim there is {facts.version} as here, but its code is not the same; {install}",
            users=True,
        )
    elif facts.missing:
        names = ", ".join(facts.missing)
        yield Problem(f"{facts.executable} lacks what agentsim needs: {names}; {install}", True)
    skew_s = max(began_s - facts.time_s, facts.time_s - ended_s)
    if skew_s > _MOST_SKEW_S:
        side = "ahead" if facts.time_s > ended_s else "behind"
        yield Problem(f"its clock is {_duration(skew_s)} {side}; set it, or switch NTP on")
    for folder, (free, cannot) in facts.folders.items():
        if cannot:
            yield Problem(f"nothing can be written to {folder} ({cannot}); make room there")
        elif 0 <= free < _LEAST_FREE_BYTES:
            yield Problem(f"{folder} has only {free // 2**20} MiB free; make room there")
    if host.gpus is not None and facts.gpus < host.gpus:
        yield Problem(
            f"it shows {facts.gpus} GPUs, and the hostfile says {host.gpus}; does nvidia-smi see "
            "them there?"
        )
    if facts.no_port:
        yield Problem(f"no port of {host.port} can be listened on ({facts.no_port})")


def _duration(seconds: float) -> str:
    for unit, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


async def _knock(connection: Connection, port: int, token: str, timeout_s: float) -> Problem | None:
    """Connect to a port where the host listens; None when it answers."""
    address = await connection.reached_at()
    help_ = (
        "open the ports of `port`, name another address by `advertise`, or go through ssh with "
        "`transport: tunnel`"
    )
    where = f"port {port} at {address}"
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                answer = await reader.read(64)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except TimeoutError:
        return Problem(f"{where} is closed to us (no answer within {timeout_s:g} s); {help_}")
    except OSError as error:
        why = error.strerror or str(error)
        return Problem(f"{where} is closed to us ({why}); {help_}")
    if answer != token.encode():
        return Problem(f"at {where} another machine answers; {help_}")
    return None


def _error(bad: list[Looked], count: int, minimum: int | None) -> AgentsimError:
    lines = [f"  {item.host.address}: {_in_words(item)}" for item in bad]
    least = f", and {minimum} must be" if minimum else ""
    head = f"{len(bad)} of {count} hosts cannot be used{least}; nothing was started"
    text = "\n".join([head, *lines])
    users = all(problem.users for item in bad for problem in item.problems)
    return UserError(text) if users else LaunchError(text)


def _in_words(item: Looked) -> str:
    return "; also: ".join(problem.what for problem in item.problems)
