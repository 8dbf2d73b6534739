"""What the programs of a run log: read back, bounded, without secrets, whatever the disk does."""

from __future__ import annotations

import errno
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentsim import logs

_log = logging.getLogger("agentsim.of_a_test")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[logs.Log]:
    settings = logs.LogSettings(str(tmp_path / "a.log"), "r1", "here", max_bytes=2000, older=2)
    log = logs.begin(settings, "worker", 3, logger="agentsim")
    yield log
    log.close()


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_a_line_says_who_when_where_and_what(log: logs.Log, tmp_path: Path) -> None:
    _log.debug("not this")
    _log.warning("refused %d messages of “7”", 2)
    (line,) = lines(tmp_path / "a.log")
    data = json.loads(line)
    assert data.pop("time").endswith("+00:00")
    assert data == {
        "level": "WARNING",
        "run": "r1",
        "program": "worker",
        "index": 3,
        "host": "here",
        "pid": os.getpid(),
        "logger": "agentsim.of_a_test",
        "message": "refused 2 messages of “7”",
    }
    record = logs.parse(line)
    assert record is not None
    assert record.text() == "WARNING worker 3 on here: refused 2 messages of “7”"


def test_an_exception_is_one_line_and_is_read_as_several(log: logs.Log, tmp_path: Path) -> None:
    try:
        raise ValueError("of all things")
    except ValueError:
        _log.exception("it failed")
    assert len(lines(tmp_path / "a.log")) == 1
    shown = logs.tail(tmp_path / "a.log", 3)
    assert shown[-1] == "    ValueError: of all things"
    assert len(shown) == 3


def test_the_tail_shows_what_is_no_record_as_it_is(log: logs.Log, tmp_path: Path) -> None:
    _log.info("one")
    with (tmp_path / "a.log").open("a") as file:
        file.write("Fatal Python error: Segmentation fault\n{not json}\n")
    assert logs.tail(tmp_path / "a.log") == [
        "INFO worker 3 on here: one",
        "Fatal Python error: Segmentation fault",
        "{not json}",
    ]
    assert logs.tail(tmp_path / "nowhere") == []


def test_a_large_log_is_renamed_and_the_oldest_goes(log: logs.Log, tmp_path: Path) -> None:
    for number in range(100):
        _log.warning("number %03d", number)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["a.log", "a.log.1", "a.log.2"]
    kept = [line for name in reversed(names) for line in lines(tmp_path / name)]
    numbers = [json.loads(line)["message"] for line in kept]
    assert numbers == [f"number {n:03}" for n in range(100 - len(kept), 100)]
    assert all((tmp_path / name).stat().st_size < 2400 for name in names)


def test_what_is_hidden_is_in_no_line(log: logs.Log, tmp_path: Path) -> None:
    logs.hide(["sk-planted-0123456789", "", "no"])
    _log.warning("no key sk-planted-0123456789 in %s", {"x": "sk-planted-0123456789"})
    try:
        raise RuntimeError("sk-planted-0123456789")
    except RuntimeError:
        _log.exception("failed")
    text = (tmp_path / "a.log").read_text()
    assert "planted" not in text
    assert "no key *** in" in text


def test_lines_without_room_are_dropped_and_counted(
    log: logs.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    room = 5

    def full(fd: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left, room = room, 0
        return write(fd, data[:left])

    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        for _ in range(3):
            _log.warning("lost")
    _log.warning("there again")
    torn, *rest = lines(tmp_path / "a.log")
    assert len(torn) == 5
    assert [json.loads(line)["message"] for line in rest] == [
        "lines before this one for which there was no room: 3",
        "there again",
    ]


def test_programs_that_are_started_log_for_the_same_run(log: logs.Log, tmp_path: Path) -> None:
    settings = logs.settings_for(tmp_path / "b.log", "there")
    assert (settings.run, settings.host, settings.max_bytes) == ("r1", "there", 2000)
    token = logs.run.set("r2")
    try:
        assert logs.settings_for(tmp_path / "b.log").run == "r2"
        _log.warning("of the other")
    finally:
        logs.run.reset(token)
    assert json.loads(lines(tmp_path / "a.log")[0])["run"] == "r2"


def test_what_a_program_prints_is_in_its_log_and_bounded_too(tmp_path: Path) -> None:
    program = """
import sys
from agentsim import logs
log = logs.begin(logs.LogSettings(sys.argv[1], max_bytes=3000, older=1), "worker", 0)
for number in range(60):
    print("printed", "." * 90, number, flush=True)
    log.bound()
raise ValueError("at the end")
"""
    path = tmp_path / "w.log"
    with path.open("ab") as file:
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], stdout=file, stderr=file, check=False
        )
    assert done.returncode == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w.log", "w.log.1"]
    assert path.stat().st_size < 4500
    record = logs.parse(lines(path)[-1])
    assert record is not None
    assert record.level == "CRITICAL"
    assert "ValueError: at the end" in record.traceback


def test_no_log_is_no_reason_to_fail(tmp_path: Path) -> None:
    program = """
import logging, sys
from agentsim import logs
logs.begin(logs.LogSettings(sys.argv[1]), "node")
logging.getLogger("agentsim").warning("to stderr")
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "no" / "w.log")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stderr)["message"] == "to stderr"


def test_printing_without_room_is_no_error(tmp_path: Path) -> None:
    program = """
import os, resource, sys
from agentsim import logs
logs.forgive_prints()
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
for number in range(100):
    print("printed “", number, "." * 90)
    print("also", file=sys.stderr)
os._exit(7)
"""
    with (tmp_path / "w.log").open("ab") as file:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=file, stderr=file, check=False
        )
    assert done.returncode == 7
    assert (tmp_path / "w.log").stat().st_size == 3000
    assert "printed “ 0 ." in (tmp_path / "w.log").read_text()
