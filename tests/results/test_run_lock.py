"""Two programs that want to write one run: on one machine, and over a network whose locks lie."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from agentsim.errors import ResultsError
from agentsim.results import lock
from agentsim.results.framing import Kind, frames, is_being_written
from agentsim.results.journal import Journal
from agentsim.results.lock import Holder, lock_path

ELSEWHERE = Holder("node17", "another-boot", 4242, 99, "2026-11-30T01:00:00+00:00", "t1")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal that nobody holds."""
    path = tmp_path / "journal.log"
    with Journal.create(path) as journal:
        journal.append(Kind.RUN, b"first")
    return path


def forge(journal: Path, holder: Holder, age_s: float = 0.0) -> None:
    file = lock_path(journal)
    file.write_bytes(msgspec.json.encode(holder))
    os.utime(file, (time.time() - age_s,) * 2)


def holder_of(journal: Path) -> Holder:
    return msgspec.json.decode(lock_path(journal).read_bytes(), type=Holder)


@pytest.fixture
def other(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the journal."""
    program = (
        "import sys; from pathlib import Path; from agentsim.results.journal import Journal\n"
        "journal = Journal.open(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()\n"
        "journal.close()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        yield other
        other.kill()


def no_locks(fd: int, operation: int) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def lying(fd: int, operation: int) -> None:
    """Every process gets the lock."""


def test_the_second_of_two_processes_is_told_who_holds_the_run(
    path: Path, other: subprocess.Popen[bytes]
) -> None:
    with pytest.raises(ResultsError, match=f"another process .*process {other.pid} on"):
        Journal.open(path)
    assert is_being_written(path)
    other.communicate()
    assert not lock_path(path).exists()
    Journal.open(path).close()


@pytest.mark.parametrize("flock", [no_locks, lying])
def test_a_process_that_lives_is_respected_where_locks_are_none_or_lie(
    path: Path,
    other: subprocess.Popen[bytes],
    flock: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fcntl, "flock", flock)
    if flock is lying:
        # Locks lie between machines only.
        forge(path, msgspec.structs.replace(holder_of(path), boot="another-boot", host="x"))
    with pytest.raises(ResultsError, match=f"process {other.pid} on"):
        Journal.open(path)
    assert is_being_written(path)


@pytest.mark.parametrize("flock", [fcntl.flock, no_locks])
def test_a_killed_process_blocks_nobody_on_its_machine(
    path: Path,
    other: subprocess.Popen[bytes],
    flock: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other.kill()
    other.wait()
    assert lock_path(path).exists()
    monkeypatch.setattr(fcntl, "flock", flock)
    assert not is_being_written(path)
    with Journal.open(path) as journal:
        assert f"process {other.pid}" in journal.took_over
        assert holder_of(path).pid == os.getpid()
    assert not lock_path(path).exists()


def test_another_process_with_the_same_id_is_not_the_holder(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Holder.own()
    forge(path, msgspec.structs.replace(own, started=own.started - 1, token="t0"))
    monkeypatch.setattr(fcntl, "flock", no_locks)
    Journal.open(path).close()


def test_a_process_of_another_machine_holds_the_run(path: Path) -> None:
    forge(path, ELSEWHERE, age_s=100)
    with pytest.raises(
        ResultsError, match=r"process 4242 on node17, since .* 10\d s ago"
    ) as caught:
        Journal.open(path)
    assert str(lock_path(path)) in str(caught.value)
    assert is_being_written(path)
    assert holder_of(path) == ELSEWHERE
    assert [frame.body for frame in frames(path)] == [b"first"]


def test_one_that_was_silent_for_long_is_taken_over(path: Path) -> None:
    forge(path, ELSEWHERE, age_s=400)
    assert not is_being_written(path)
    with Journal.open(path) as journal:
        assert "node17" in journal.took_over
        assert "silent for 7 min" in journal.took_over
        journal.append(Kind.END, b"second")
    assert len(list(frames(path))) == 2
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_machine_that_was_started_anew_blocks_nobody(path: Path) -> None:
    forge(path, msgspec.structs.replace(Holder.own(), boot="an earlier one", token="t0"))
    Journal.open(path).close()


def test_a_lock_file_that_cannot_be_read_counts_by_its_age(path: Path) -> None:
    lock_path(path).write_bytes(b"{")
    with pytest.raises(ResultsError, match="an unknown machine"):
        Journal.open(path)
    os.utime(lock_path(path), (0, 0))
    Journal.open(path).close()


def test_who_was_taken_over_from_writes_no_more(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal.open(path) as journal:
        journal.append(Kind.ANSWERS, b"mine")
        forge(path, ELSEWHERE)
        # It slept: no beat came.
        monkeypatch.setattr(lock, "_DOUBT_S", -1.0)
        with pytest.raises(ResultsError, match=r"4242 on node17.* has taken over"):
            journal.append(Kind.ANSWERS, b"too late")
    assert holder_of(path) == ELSEWHERE, "another's lock is not given back"
    assert [frame.body for frame in frames(path)] == [b"first", b"mine"]


def test_the_holder_shows_that_it_lives(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_BEAT_S", 0.01)
    with Journal.open(path):
        os.utime(lock_path(path), (0, 0))
        deadline_s = time.monotonic() + 20
        while lock_path(path).stat().st_mtime == 0:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        # A lock file that somebody removed is made again.
        lock_path(path).unlink()
        while not lock_path(path).exists():
            assert time.monotonic() < deadline_s
            time.sleep(0.01)


@pytest.mark.slow
def test_one_of_many_that_take_over_at_once_gets_it(path: Path) -> None:
    forge(path, ELSEWHERE, age_s=1000)
    program = """
import fcntl, sys, time
from pathlib import Path
from agentsim.errors import ResultsError
from agentsim.results.journal import Journal
from agentsim.results import lock
fcntl.flock = lambda fd, operation: None  # locks that lie, and machines apart
boot = sys.argv[2]
lock._boot = lambda: boot
lock.platform.node = lambda: boot
print("ready", flush=True)
sys.stdin.readline()
try:
    journal = Journal.open(Path(sys.argv[1]))
except ResultsError as error:
    print("refused", error, flush=True)
else:
    print("held", flush=True)
sys.stdin.read()
"""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path), f"boot{n}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        said = [racer.stdout.readline() for racer in racers if racer.stdout is not None]
        assert sorted(line.split()[0] for line in said) == ["held"] + ["refused"] * 3, said
    finally:
        for racer in racers:
            racer.communicate()
