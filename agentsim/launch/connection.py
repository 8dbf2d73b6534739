"""One host through the system's `ssh`: programs run there, and what its failures mean."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import IO

from agentsim import children
from agentsim.config.hostfile import Host, Ssh
from agentsim.errors import MissingPackage
from agentsim.launch import far, remote

_SSH_FAILED = 255
_MOST_BYTES = 512 * 2**20
_ERR_BYTES = 64 * 1024
# A long line is the logs' and nobody's who waits for a mark.
_LINE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a host cannot be used.

    Attributes:
        what: what was found, and the next step.
        users: whether it is a mistake in what the user gave.
    """

    what: str
    users: bool = False


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach one host. It holds nothing open."""

    ssh: Ssh
    host: Host

    async def begin(
        self, stderr: int | IO[bytes], *, forward: str = ""
    ) -> asyncio.subprocess.Process:
        """Start `ssh`.

        Args:
            stderr: where it goes.
            forward: see `remote.arguments`.

        Raises:
            MissingPackage: there is no ssh on this machine.
        """
        try:
            return await asyncio.create_subprocess_exec(
                *remote.arguments(self.ssh, self.host.address, forward=forward),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                limit=_LINE_BYTES,
                # Ctrl-C goes to the orchestrator alone, which ends what it has begun in order.
                start_new_session=True,
            )
        except FileNotFoundError:
            raise MissingPackage("the ssh launcher", "apt-get install openssh-client") from None

    def stdin(self, program: Sequence[str], pythons: Sequence[str] = ()) -> bytes:
        """What stdin begins with, to run a Python program.

        Args:
            program: arguments of Python.
            pythons: to try where the hostfile names none; none: those that may have agentsim.
        """
        usual = (remote.venv_python(self.host), sys.executable, "python3")
        return remote.stdin(self.host, program, pythons or usual)

    @asynccontextmanager
    async def call(
        self, program: Sequence[str], pythons: Sequence[str] = ()
    ) -> AsyncIterator[Call]:
        """Run a Python program on the host; ssh is not left running.

        Args:
            program, pythons: see `stdin`.
        """
        # Not a pipe: a master connection that ssh leaves behind may keep stderr open.
        with tempfile.TemporaryFile() as err:
            process = await self.begin(err)
            try:
                call = Call(process, err)
                await call.write(self.stdin(program, pythons))
                yield call
            finally:
                kill(process)

    async def reached_at(self) -> str:
        """The address that this machine connects to: the hostfile's, or as ssh has it."""
        if self.host.advertise is not None:
            return self.host.advertise
        asked = remote.arguments(self.ssh, self.host.address)
        process = await asyncio.create_subprocess_exec(
            *("ssh", "-G", *asked[1:-1]),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        out, _ = await process.communicate()
        for line in out.decode(errors="replace").splitlines():
            key, _, value = line.partition(" ")
            if key == "hostname":
                return value.strip()
        return self.host.address.rpartition("@")[2]

    def problem(self, status: int | None, err: str) -> Problem:
        """What it means that a program did not say what it should have said.

        Args:
            status: that `ssh` exited with; None: it did not in time.
            err: what it wrote to stderr.
        """
        return explain(self.ssh, self.host, status, err)


class Call:
    """A program that runs on a host. Use `Connection.call`."""

    def __init__(self, process: asyncio.subprocess.Process, err: IO[bytes]) -> None:
        self._process = process
        self._err = err

    async def write(self, data: bytes) -> None:
        """Give it something on its stdin; lost when it has ended."""
        await children.tell(self._process, data)

    def end_stdin(self) -> None:
        """Let its stdin end."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def line(self) -> bytes | None:
        """What stands behind the mark on the line that has it; None when its output ends first."""
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError):  # a line without end
            while line := await self._process.stdout.readline():
                if (said := far.answer(line)) is not None:
                    return said
        return None

    async def read(self) -> bytes | None:
        """All that it writes behind the mark; None when its output ends first."""
        assert self._process.stdout is not None
        out = bytearray()
        while (data := await self._process.stdout.read(2**20)) and len(out) < _MOST_BYTES:
            out += data
        return far.answer(bytes(out))

    async def status(self) -> int:
        """What `ssh` exits with, once it has: the program's status, or 255 when ssh failed."""
        return await self._process.wait()

    def err(self) -> str:
        """The end of what it has written to stderr, and ssh with it."""
        size = os.fstat(self._err.fileno()).st_size
        begin = max(0, size - _ERR_BYTES)
        return os.pread(self._err.fileno(), _ERR_BYTES, begin).decode(errors="replace")


def kill(process: asyncio.subprocess.Process) -> None:
    """End an ssh client with its helpers (a proxy command); harmless when it has ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def explain(ssh: Ssh, host: Host, status: int | None, err: str) -> Problem:
    """What it means that `ssh` ended without having said what it should.

    Args:
        status: None: it did not end in time.
        err: what it wrote to stderr.
    """
    login = f"ssh {'' if ssh.config is None else f'-F {ssh.config} '}" + (
        f"{ssh.user}@{host.address}" if ssh.user else host.address
    )
    lines = [line.strip() for line in err.strip().splitlines() if line.strip()]
    said = lines[-1] if lines else ""
    if status == remote.NO_FOLDER:
        return Problem(f"workdir {host.workdir} cannot be made there: {said}", users=True)
    if status == remote.NO_PYTHON:
        wanted = host.python or "python3"
        return Problem(
            f"there is no {wanted}; name one by `python`, or load it by `setup`", users=True
        )
    if status == remote.SETUP_FAILED:
        return Problem(said.removeprefix("agentsim: "), users=True)
    if status is not None and status != _SSH_FAILED:
        text = "; ".join(lines[-3:]) or "and said nothing"
        return Problem(f"the program there ended with status {status}: {text}")
    for words, what, users in _MEANINGS:
        found = next((line for line in lines if any(word in line for word in words)), None)
        if found is not None:
            return Problem(what.format(said=found.rstrip("\r"), login=login), users)
    what = "it did not answer in time" if status is None else "ssh failed"
    return Problem(f"{what}{f': {said}' if said else ''}; try `{login}` by hand")


_MEANINGS: tuple[tuple[tuple[str, ...], str, bool], ...] = (
    (
        ("REMOTE HOST IDENTIFICATION HAS CHANGED", "host key for", "differs from the key"),
        "its host key has changed: another machine answers there, or it was set up anew. If that "
        "is right, remove the old key with ssh-keygen -R, then log in once with `{login}`",
        False,
    ),
    (
        ("Host key verification failed", "host key is known"),
        "its host key is not known here; log in once with `{login}` and check the key",
        False,
    ),
    (
        ("Permission denied", "Too many authentication failures"),
        "it does not let us in ({said}); `{login}` must log in without asking: put your key there "
        "with ssh-copy-id, or load it with ssh-add",
        False,
    ),
    (
        ("Could not resolve hostname",),
        "there is no such host ({said}); is its address right?",
        True,
    ),
    (
        ("Bad configuration option", "Can't open user config file", "keyword"),
        "ssh does not take its settings: {said}",
        True,
    ),
    (
        ("Connection refused", "Connection closed", "Connection reset", "kex_exchange"),
        "its ssh server does not answer ({said}); does it run, and does it let in so many at once "
        "(`ssh: {{parallel: 2}}`)?",
        False,
    ),
    (
        ("timed out", "No route to host", "unreachable", "timeout"),
        "it cannot be reached ({said}); is it up, and is its address right?",
        False,
    ),
)
