"""What a run's journal does while the disk is full: the disk here is the test's own."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentsim.errors import DiskFull, ResultsError
from agentsim.orchestrator.ledger import Ledger, Pace
from agentsim.orchestrator.tables import Tables
from agentsim.results import Event, Journal, Kind, frames
from agentsim.results.records import from_json
from agentsim.results.storage import failure

QUICK = Pace(look_s=0.001, try_s=1000.0, tell_s=1000.0)


class Disk:
    """Refuses to write while it has an error number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: int | None = None
        self.free = 10**12
        self._writev = os.writev
        self.tries = 0
        monkeypatch.setattr("os.writev", self._write)
        monkeypatch.setattr("os.statvfs", self._stat)

    def fill(self, error: int = errno.ENOSPC) -> None:
        self.error, self.free = error, 0

    def make_room(self) -> None:
        self.error, self.free = None, 10**12

    def _write(self, fd: int, parts: Sequence[memoryview]) -> int:
        self.tries += 1
        if self.error is not None:
            raise OSError(self.error, os.strerror(self.error))
        return self._writev(fd, parts)

    def _stat(self, path: Path) -> Any:
        return SimpleNamespace(f_bavail=self.free, f_blocks=10**12, f_frsize=1)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def journal(tmp_path: Path, disk: Disk) -> Iterator[Journal]:
    with Journal.create(tmp_path / "journal.log") as journal:
        yield journal
        disk.make_room()


def contents(journal: Journal) -> list[bytes]:
    return [frame.body for frame in frames(journal.path) if frame.kind is Kind.ANSWERS]


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - a file system tells nobody
            await asyncio.sleep(0.001)


async def test_a_full_disk_is_waited_for_and_nothing_is_lost_or_reordered(
    journal: Journal, disk: Disk
) -> None:
    said: list[str] = []
    ledger = Ledger(journal, said.append, QUICK)
    await ledger.append(Kind.ANSWERS, b"0")
    disk.fill()
    waiting = [asyncio.ensure_future(ledger.append(Kind.ANSWERS, b"%d" % i)) for i in range(1, 9)]
    await until(lambda: said)
    disk.make_room()
    # One that comes when there is room stands behind those that have waited.
    offsets = await asyncio.gather(*waiting, ledger.append(Kind.ANSWERS, b"9"))
    assert offsets == sorted(offsets)
    assert contents(journal) == [b"%d" % i for i in range(10)]
    assert ledger.waited_s > 0
    events = [frame for frame in frames(journal.path) if frame.kind is Kind.EVENT]
    assert [from_json(event.body, Event).kind for event in events] == ["disk_full", "room"]


async def test_the_user_is_told_how_much_room_is_needed_again_and_at_the_end(
    journal: Journal, disk: Disk
) -> None:
    said: list[str] = []
    ledger = Ledger(journal, said.append, Pace(look_s=0.001, try_s=1000, tell_s=0.01))
    disk.fill()
    waiting = asyncio.ensure_future(ledger.append(Kind.ANSWERS, b"x"))
    await until(lambda: len(said) > 2)
    disk.make_room()
    await waiting
    assert said[0].startswith(f"the disk of {journal.path.parent} is full; waiting for room: 64 MB")
    assert "Ctrl-C" in said[0]
    assert said[1].startswith("still, after")
    assert said[-1].startswith("there is room again")


async def test_a_little_room_is_not_enough_to_go_on(journal: Journal, disk: Disk) -> None:
    ledger = Ledger(journal, lambda text: None, QUICK)
    disk.fill()
    waiting = asyncio.ensure_future(ledger.append(Kind.ANSWERS, b"x"))
    await until(lambda: disk.tries > 1)
    tries = disk.tries
    disk.free, disk.error = 1000, None
    await asyncio.sleep(0.05)
    assert disk.tries == tries
    disk.make_room()
    await waiting


@pytest.mark.parametrize(("error", "try_s"), [(errno.EDQUOT, 1000.0), (errno.ENOSPC, 0.01)])
async def test_it_is_tried_when_the_disk_does_not_tell_what_is_free(
    journal: Journal, disk: Disk, error: int, try_s: float
) -> None:
    ledger = Ledger(journal, lambda text: None, Pace(0.001, try_s, 1000.0))
    disk.fill(error)
    waiting = asyncio.ensure_future(ledger.append(Kind.ANSWERS, b"x"))
    await until(lambda: disk.tries > 5)
    disk.error = None
    await asyncio.wait_for(waiting, 20)


@pytest.mark.parametrize("error", [errno.EIO, errno.EFBIG])
async def test_what_room_does_not_mend_is_raised(journal: Journal, disk: Disk, error: int) -> None:
    said: list[str] = []
    disk.fill(error)
    with pytest.raises(ResultsError, match="cannot write the journal"):
        await Ledger(journal, said.append, QUICK).append(Kind.ANSWERS, b"x")
    assert said == []


async def test_time_limits_stand_still_while_it_waits(journal: Journal, disk: Disk) -> None:
    said: list[str] = []
    ledger = Ledger(journal, said.append, QUICK)
    loop = asyncio.get_running_loop()
    async with ledger.within(1000.0) as limit, ledger.within(None) as unlimited:
        before_s = limit.when()
        disk.fill()
        waiting = asyncio.ensure_future(ledger.append(Kind.ANSWERS, b"x"))
        await until(lambda: said)
        assert limit.when() is None
        async with ledger.within(500.0) as later:
            assert later.when() is None
            await asyncio.sleep(0.05)
            disk.make_room()
            await waiting
            after_s = later.when()
            assert after_s is not None
            assert 499 < after_s - loop.time() <= 500
        after_s = limit.when()
        assert before_s is not None
        assert after_s is not None
        assert 0.04 < after_s - before_s < ledger.waited_s + 0.5
        assert unlimited.when() is None


async def test_who_stops_waiting_leaves_the_others_in_order(journal: Journal, disk: Disk) -> None:
    said: list[str] = []
    ledger = Ledger(journal, said.append, QUICK)
    disk.fill()
    tasks = [asyncio.ensure_future(ledger.append(Kind.ANSWERS, b"%d" % i)) for i in range(3)]
    await until(lambda: said)
    tasks[0].cancel()
    await asyncio.gather(tasks[0], return_exceptions=True)
    disk.make_room()
    await asyncio.gather(*tasks[1:])
    assert contents(journal) == [b"1", b"2"]
    waited_s = ledger.waited_s
    await asyncio.sleep(0.01)
    assert ledger.waited_s == waited_s


async def test_nothing_is_waited_for_when_the_run_ends(journal: Journal, disk: Disk) -> None:
    said: list[str] = []
    ledger = Ledger(journal, said.append, Pace(look_s=1000.0))
    disk.fill()
    waiting = asyncio.ensure_future(ledger.append(Kind.ANSWERS, b"x"))
    await until(lambda: said)
    ledger.give_up()
    for append in (waiting, ledger.append(Kind.END, b"x")):
        with pytest.raises(DiskFull):
            await asyncio.wait_for(append, 20)
    assert contents(journal) == []


async def test_tables_wait_too_and_have_each_row_once(
    journal: Journal, disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    written: list[int] = []
    waiting: list[int] = []

    class Writer:
        """As `TableWriter`: keeps what it could not write."""

        def write(self, round: int, *_: object) -> None:
            waiting.append(round)
            self.flush()

        def flush(self) -> None:
            if disk.error is not None:
                raise failure(tmp_path / "t", "cannot write", OSError(disk.error, "no room"))
            written.extend(waiting)
            waiting.clear()

        finish = flush

    writer: Any = Writer()
    tables = Tables(writer, Ledger(journal, said.append, QUICK))

    async def put(*rounds: Any) -> None:
        for round in rounds:
            await tables.put(round, round, round)

    await put(1)
    disk.fill()
    putting = asyncio.ensure_future(put(*range(2, 20)))
    await until(lambda: said)
    await asyncio.sleep(0.02)
    assert not putting.done(), "the game waits"
    disk.make_room()
    await putting
    await tables.close()
    assert written == list(range(1, 20))
    assert len(said) == 2


async def test_files_beside_the_journal_wait_likewise(journal: Journal, disk: Disk) -> None:
    said: list[str] = []
    ledger = Ledger(journal, said.append, QUICK)
    disk.fill()

    def work() -> str:
        if disk.error is not None:
            raise failure(journal.path, "cannot write", OSError(disk.error, "no room"))
        return "done"

    waiting = asyncio.ensure_future(ledger.written(work))
    await until(lambda: said)
    disk.make_room()
    assert await waiting == "done"
    assert len(said) == 2


async def test_a_thread_waits_for_room_as_well(journal: Journal, disk: Disk) -> None:
    said: list[str] = []
    ledger = Ledger(journal, said.append, QUICK)

    def append() -> None:
        for i in range(5):
            ledger.append_in_thread(Kind.ANSWERS, b"%d" % i)

    await asyncio.to_thread(append)
    disk.fill()
    waiting = asyncio.ensure_future(asyncio.to_thread(append))
    await until(lambda: said)
    disk.make_room()
    await waiting
    assert contents(journal) == [b"%d" % i for i in range(5)] * 2
