"""The journal of a run that goes on: when the disk is full, who appends waits until there is room.

Waiting is what bounds memory: the loop that appends takes no further message, inboxes and windows
fill, and workers stop asking.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from agentsim.errors import DiskFull
from agentsim.results import Event, Journal, Kind, to_json
from agentsim.results.records import EventKind

_T = TypeVar("_T")
_MIB = 1024 * 1024
# A run that went on with less would stop again at once. On small disks a share of them will do.
_ENOUGH_BYTES = 64 * _MIB
_ENOUGH_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Pace:
    """How a ledger waits.

    Attributes:
        look_s: between two looks whether there is room.
        try_s: after which it is tried even if there seems to be none: a file system may keep a
            reserve, or tell less than is free.
        tell_s: after which the user is told again.
    """

    look_s: float = 1.0
    try_s: float = 30.0
    tell_s: float = 300.0


class Ledger:
    """Appends to a journal, and waits while there is no room. Made on the loop that uses it.

    Args:
        journal: of the run.
        notice: is told when there is no room, and when there is again; one line.
        pace: how it waits.
    """

    def __init__(
        self, journal: Journal, notice: Callable[[str], None], pace: Pace | None = None
    ) -> None:
        self._journal = journal
        self._notice = notice
        self._pace = pace or Pace()
        self._loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()
        self._queued = 0
        self._waiting = 0
        self._since_s = self._told_s = 0.0
        self._waited_s = 0.0
        # Time limits, each with what was left of it when the waiting began.
        self._limits: dict[asyncio.Timeout, float | None] = {}
        self._ending = asyncio.Event()

    @property
    def path(self) -> Path:
        """The journal's file."""
        return self._journal.path

    @property
    def waited_s(self) -> float:
        """Seconds spent on waiting for room, so far."""
        return self._waited_s + (time.monotonic() - self._since_s if self._waiting else 0.0)

    async def append(self, kind: Kind, body: bytes | memoryview) -> int:
        """Append one frame, once there is room; frames stand in the order of the calls.

        Returns:
            The offset of the frame.

        Raises:
            ResultsError: it could not be written, for a reason that room does not mend.
        """
        if not self._queued:
            try:
                return self._journal.append(kind, body)
            except DiskFull:
                pass  # it is tried again, in turn

        async def append() -> int:
            return self._journal.append(kind, body)

        self._queued += 1
        try:
            async with self._turn:
                return await self._when_there_is_room(append, len(body))
        finally:
            self._queued -= 1

    def append_in_thread(self, kind: Kind, body: bytes | memoryview) -> int:
        """As `append`, from another thread than the loop's, which waits."""
        if not self._queued:
            try:
                return self._journal.append(kind, body)
            except DiskFull:
                pass  # it is tried again, in turn
        return asyncio.run_coroutine_threadsafe(self.append(kind, body), self._loop).result()

    async def written(self, work: Callable[[], _T], thread: Executor | None = None) -> _T:
        """Do in a thread what writes files beside the journal; again once there is room.

        Args:
            work: may be called several times.
            thread: where; None: in any.

        Raises:
            ResultsError: it failed, for a reason that room does not mend.
        """
        loop = asyncio.get_running_loop()
        return await self._when_there_is_room(lambda: loop.run_in_executor(thread, work), 0)

    async def sync(self) -> None:
        """Force to disk what was appended.

        Raises:
            ResultsError: the disk did not take it; nothing more can be appended.
        """
        await asyncio.to_thread(self._journal.sync)

    @property
    def gave_up(self) -> bool:
        """Whether nothing is waited for any more."""
        return self._ending.is_set()

    def give_up(self) -> None:
        """The run is ending: from now on nothing is waited for, and `DiskFull` is raised."""
        self._ending.set()

    @asynccontextmanager
    async def within(self, limit_s: float | None) -> AsyncIterator[asyncio.Timeout]:
        """An `asyncio.timeout` that stands still while there is no room.

        Raises:
            TimeoutError: the time is over.
        """
        async with asyncio.timeout(limit_s) as limit:
            self._limits[limit] = None
            if self._waiting:
                self._hold(limit)
            try:
                yield limit
            finally:
                del self._limits[limit]

    async def _when_there_is_room(self, work: Callable[[], Awaitable[_T]], size: int) -> _T:
        """Do something until it finds room."""
        try:
            return await work()
        except DiskFull as error:
            full = error
        self._begin(full, size)
        try:
            while True:
                await self._look(full, size)
                try:
                    done = await work()
                except DiskFull as error:
                    full = error
                else:
                    break
        except BaseException:
            self._end()
            raise
        took_s = time.monotonic() - self._since_s
        if self._end():
            text = f"there is room again after {_duration(took_s)}; going on"
            self._notice(text)
            self._record("disk_full", str(full), took_s)
            self._record("room", text, 0.0)
        return done

    def _record(self, kind: EventKind, text: str, ago_s: float) -> None:
        """Journal what has happened, in time."""
        at = (datetime.now(UTC) - timedelta(seconds=ago_s)).isoformat(timespec="seconds")
        with contextlib.suppress(DiskFull):
            self._journal.append(Kind.EVENT, to_json(Event(kind, text, at=at)))

    def _begin(self, full: DiskFull, size: int) -> None:
        """One more waits for room."""
        self._waiting += 1
        if self._waiting == 1:
            self._since_s = time.monotonic()
            for limit in self._limits:
                self._hold(limit)
            self._tell(full, size)

    def _end(self) -> bool:
        """One fewer waits; True when nobody does any more."""
        self._waiting -= 1
        if self._waiting:
            return False
        self._waited_s += time.monotonic() - self._since_s
        for limit, left_s in self._limits.items():
            if left_s is not None:
                limit.reschedule(asyncio.get_running_loop().time() + left_s)
                self._limits[limit] = None
        return True

    def _hold(self, limit: asyncio.Timeout) -> None:
        """Let a time limit stand still."""
        when_s = limit.when()
        if when_s is not None and not limit.expired():
            self._limits[limit] = max(0.0, when_s - asyncio.get_running_loop().time())
            limit.reschedule(None)

    async def _look(self, full: DiskFull, size: int) -> None:
        """Wait until it is worth trying again."""
        began_s = time.monotonic()
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), self._pace.look_s)
                raise full
            now_s = time.monotonic()
            if now_s - self._told_s >= self._pace.tell_s:
                self._tell(full, size)
            if full.quota or now_s - began_s >= self._pace.try_s:
                return
            free, needed = _room(full.folder, size)
            if free >= needed:
                return

    def _tell(self, full: DiskFull, size: int) -> None:
        now_s = self._told_s = time.monotonic()
        waited_s = now_s - self._since_s
        again = f"still, after {_duration(waited_s)}, " if waited_s >= self._pace.tell_s else ""
        if full.quota:
            what = f"{again}the disk quota in {full.folder} is used up; waiting for room"
        else:
            free, needed = _room(full.folder, size)
            what = (
                f"{again}the disk of {full.folder} is full; waiting for room: "
                f"{_mib(needed)} MB free are needed, {_mib(free)} MB are"
            )
        self._notice(f"{what}. Nothing is lost by waiting, nor by Ctrl-C, which ends the run")


def _room(folder: Path, size: int) -> tuple[int, int]:
    """Bytes that are free in a folder, and that are needed to go on."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return 0, 0  # it cannot be told: try
    enough = min(_ENOUGH_BYTES, int(disk.f_blocks * disk.f_frsize * _ENOUGH_SHARE))
    return disk.f_bavail * disk.f_frsize, max(enough, 2 * size)


def _mib(size: int) -> str:
    return f"{size / _MIB:,.0f}" if size >= 10 * _MIB else f"{size / _MIB:.1f}"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
