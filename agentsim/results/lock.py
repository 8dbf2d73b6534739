"""Who writes a journal: one process at a time, also over a network file system.

Two locks stand beside each other. `flock` is exact within one machine and is gone with its process.
Over a network it may be refused or, worse, granted to everybody; hence a file beside the journal
says who holds it, and is touched every few seconds. Who finds the file of a process of another
machine takes over only when it was not touched for minutes, by the clock of the file server.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
import secrets
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from agentsim.errors import ResultsError
from agentsim.results.storage import discard, failure

_TRIES = 5
_PAUSE_S = 0.02
_BEAT_S = 20.0
_STALE_S = 300.0
# After so long without a beat (a laptop slept, the server was away) it is looked before a write
# whether somebody has taken over meanwhile.
_DOUBT_S = 60.0
# What file systems answer that have no locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class Holder(Struct, frozen=True):
    """What a lock file says, as JSON.

    Attributes:
        host: name of the machine.
        boot: tells its starts apart.
        pid: of the process.
        started: clock ticks from the machine's start to the process's; tells processes apart that
            have had the same pid; 0 where the system does not say.
        since: UTC, ISO 8601.
        token: random; tells the locks of one process apart.
    """

    host: str
    boot: str
    pid: int
    started: int
    since: str
    token: str

    @classmethod
    def own(cls) -> Holder:
        """This process."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        pid = os.getpid()
        return cls(platform.node(), _boot(), pid, _started(pid), now, secrets.token_hex(8))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


class RunLock:
    """A journal's lock, held by this process. Use `take`.

    Attributes:
        took_over: whose lock was taken over, and why; empty when there was none.
    """

    def __init__(self, path: Path, holder: Holder, took_over: str) -> None:
        self.took_over = took_over
        self._path = path
        self._holder = holder
        self._lost = ""
        self._beaten_s = _now_s()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="run lock", daemon=True)
        self._thread.start()

    @classmethod
    def take(cls, journal: Path, fd: int) -> RunLock:
        """Lock a journal.

        Args:
            journal: its path; the lock file stands beside it.
            fd: the open journal.

        Raises:
            ResultsError: another process holds it; the message says which.
        """
        path = lock_path(journal)
        certain = _flock(journal, path, fd)
        own = Holder.own()
        try:
            took_over = _create(path, own, certain=certain)
        except OSError as error:
            raise failure(path, "cannot lock the run", error) from error
        return cls(path, own, took_over)

    def check(self) -> None:
        """Say when the lock is not this process's any more. Cheap: call it before each write.

        Raises:
            ResultsError: another process has taken over.
        """
        if _now_s() - self._beaten_s > _DOUBT_S:
            self._touch()
        if self._lost:
            raise ResultsError(
                f"{self._path}: {self._lost} has taken over this run, because this process gave no "
                "sign of life for minutes; nothing more is written here"
            )

    def release(self) -> None:
        """Give it back; twice is harmless."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        if _read(self._path)[0] == self._holder:
            discard(self._path)

    def _beat(self) -> None:
        while not self._ended.wait(_BEAT_S):
            self._touch()

    def _touch(self) -> None:
        """Show that this process lives; notice when another one has taken over."""
        there, _ = _read(self._path)
        try:
            if there is None:
                # Somebody removed the file, or the server is away.
                _put(self._path, self._holder)
            elif there != self._holder:
                self._lost = str(there)
                return
            else:
                os.utime(self._path)
        except OSError:
            return
        self._beaten_s = _now_s()


def lock_path(journal: Path) -> Path:
    """The file that says who holds a journal."""
    return journal.with_name(f"{journal.name}.lock")


@contextlib.contextmanager
def held(journal: Path) -> Iterator[None]:
    """Keep others from writing a journal, and what is made from it, for a while.

    Raises:
        ResultsError: another process, or this one, writes it.
    """
    try:
        fd = os.open(journal, os.O_RDWR)
    except OSError as error:
        raise failure(journal, "cannot open the journal", error) from error
    try:
        lock = RunLock.take(journal, fd)
        try:
            yield
        finally:
            lock.release()
    finally:
        os.close(fd)


def is_held(journal: Path, file: BinaryIO) -> bool:
    """Whether a process writes a journal, on this machine or another.

    Args:
        file: the journal, open for reading.
    """
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        certain = False
    else:
        fcntl.flock(file.fileno(), fcntl.LOCK_UN)
        certain = True
    holder, touched_s = _read(lock_path(journal))
    return holder is not None and not _gone(holder, time.time() - touched_s, certain=certain)


def _flock(journal: Path, lock: Path, fd: int) -> bool:
    """Take the system's lock; whether it can be relied on within this machine."""
    # Readers take the lock for a moment to learn whether anybody writes: hence several tries.
    for left in reversed(range(_TRIES)):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not left:
                holder, _ = _read(lock)
                who = "" if holder is None else f" ({holder})"
                raise ResultsError(f"{journal}: another process is writing this run{who}") from None
            time.sleep(_PAUSE_S)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return False
            raise failure(journal, "cannot lock the journal", error) from error
        else:
            return True
    raise AssertionError


def _create(path: Path, own: Holder, *, certain: bool) -> str:
    """Make the lock file; whose was taken over, and why.

    Args:
        certain: whether no process of this machine can hold it.
    """
    taken = ""
    for _ in range(_TRIES):
        now_s = _put(path, own)
        if now_s is None:
            return taken
        there, touched_s = _read(path)
        if there is None:
            continue  # it is gone
        age_s = now_s - touched_s
        if not _gone(there, age_s, certain=certain):
            raise ResultsError(
                f"{path}: another process is writing this run: {there}, last sign of life "
                f"{max(0.0, age_s):.0f} s ago. If it is gone, this file is disregarded "
                f"{_STALE_S / 60:.0f} minutes after its last sign of life; or remove it"
            )
        _set_aside(path, there)
        why = "it is gone" if there.boot == _boot() else f"silent for {age_s / 60:.0f} min"
        taken = f"took over from {there} ({why})"
    raise ResultsError(f"{path}: other processes want to write this run, too; try again")


def _gone(holder: Holder, age_s: float, *, certain: bool) -> bool:
    """Whether a lock's holder is no more.

    Args:
        age_s: since its last sign of life.
        certain: whether no process of this machine can hold it.
    """
    if holder.boot == _boot():
        return certain or _started(holder.pid) != holder.started or not _lives(holder.pid)
    if holder.host == platform.node():
        return True  # this machine was started anew
    return age_s > _STALE_S


def _put(path: Path, holder: Holder) -> float | None:
    """Make the lock file, with its content at once.

    Returns:
        None when it was made; when there is one, the time by the clock of the file's server.
    """
    temporary = path.with_name(f".{path.name}.{holder.token}")
    try:
        temporary.write_bytes(msgspec.json.encode(holder))
        try:
            os.link(temporary, path)
        except FileExistsError:
            return temporary.stat().st_mtime
        except OSError:
            # A file system without links.
            with path.open("xb") as file:
                file.write(msgspec.json.encode(holder))
    except FileExistsError:
        return temporary.stat().st_mtime
    finally:
        discard(temporary)
    return None


def _set_aside(path: Path, gone: Holder) -> None:
    """Remove the lock of a holder that is gone, and no other."""
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with contextlib.suppress(FileNotFoundError):
        path.rename(aside)
        if _read(aside)[0] != gone:
            # Another process was quicker, and this is its lock.
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)
        discard(aside)


def _read(path: Path) -> tuple[Holder | None, float]:
    """What a lock file says, and when it was touched last (UNIX time); None when it is not there.

    It is opened anew each time: only that makes a network file system ask the server.
    """
    try:
        with path.open("rb") as file:
            touched_s = os.fstat(file.fileno()).st_mtime
            return msgspec.json.decode(file.read(), type=Holder), touched_s
    except msgspec.DecodeError:
        return Holder("an unknown machine", "", 0, 0, "an unknown time", ""), touched_s
    except OSError:
        return None, 0.0


def _boot() -> str:
    """Tells the starts of machines apart."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return platform.node()


def _started(pid: int) -> int:
    """When a process began, in clock ticks; 0 when there is none, or the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _now_s() -> float:
    """A clock that goes on while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)
