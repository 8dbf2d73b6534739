"""`agentsim logs`: what several programs have logged, in one order."""

from __future__ import annotations

import json
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agentsim.cli.app import app
from agentsim.report.logs import Wanted, follow_logs, read_logs
from agentsim.results import Journal, RunDirectory


def record(second: int, message: str, **fields: Any) -> str:
    data = {
        "time": f"2026-11-30T10:00:{second:02}.500+00:00",
        "level": "INFO",
        "program": "node",
        "host": "h",
        "message": message,
    }
    return json.dumps(data | fields) + "\n"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run that has ended, with logs of several programs, one of them renamed once."""
    run = RunDirectory.create(tmp_path / "R")
    Journal.create(run.journal).close()
    logs = run.logs
    (logs / "orchestrator.log").write_text(record(1, "begins", program="orchestrator"))
    (logs / "node-0.log.1").write_text(record(0, "first"))
    (logs / "node-0.log").write_text(record(4, "fourth", level="WARNING"))
    worker = {"program": "worker", "index": 3}
    (logs / "worker-3.log").write_text(
        "printed before all\n"
        + record(2, "second", **worker)
        + "Fatal Python error: Aborted\n"
        + record(3, "third", level="ERROR", traceback="Traceback:\nValueError: x\n", **worker)
        + '{"broken": \n'
    )
    (logs / "llama_cpp.log").write_text("srv  load_model: loading\n")
    ended_s = datetime(2026, 11, 30, 10, 0, 9, tzinfo=UTC).timestamp()
    os.utime(logs / "llama_cpp.log", (ended_s, ended_s))
    (logs / "notes.txt").write_text("not a log")
    return run


def test_lines_of_all_programs_stand_in_order_of_time(run: RunDirectory) -> None:
    shown = [line.plain() for line in read_logs(run.path)]
    assert shown == [
        "2026-11-30 10:00:00.500 INFO node on h: first",
        "2026-11-30 10:00:01.500 INFO orchestrator on h: begins",
        "worker-3.log: printed before all",
        "2026-11-30 10:00:02.500 INFO worker 3 on h: second",
        "worker-3.log: Fatal Python error: Aborted",
        "2026-11-30 10:00:03.500 ERROR worker 3 on h: third\n    Traceback:\n    ValueError: x",
        'worker-3.log: {"broken": ',
        "2026-11-30 10:00:04.500 WARNING node on h: fourth",
        "llama_cpp.log: srv  load_model: loading",
    ]


def test_levels_and_programs_are_chosen(run: RunDirectory) -> None:
    def messages(*options: str) -> list[str]:
        done = CliRunner().invoke(app, ["logs", str(run.path), *options])
        assert done.exit_code == 0, done.output
        return [line.split(": ", 1)[-1] for line in done.output.splitlines()]

    assert messages("--program", "orchestrator") == ["begins"]
    assert messages("--program", "node", "--level", "warning") == ["fourth"]
    assert messages("--program", "server") == ["srv  load_model: loading"]
    both = messages("--program", "node", "--program", "orchestrator")
    assert both == ["first", "begins", "fourth"]


def test_json_gives_the_lines_as_they_are(run: RunDirectory) -> None:
    done = CliRunner().invoke(app, ["logs", str(run.path), "--json"])
    given = done.output.splitlines(keepends=True)
    written = [line for path in run.logs.glob("*.log*") for line in path.read_text().splitlines()]
    assert sorted(line.rstrip("\n") for line in given) == sorted(written)


def test_following_ends_with_the_run_and_misses_nothing(run: RunDirectory) -> None:
    """Lines come while it is followed, and its log is renamed for another."""
    log = run.logs / "node-0.log"
    seen = threading.Event()

    def write() -> None:
        with Journal.open(run.journal), log.open("a") as file:
            held.set()
            assert seen.wait(20)
            file.write(record(5, "fifth")[:20])
            file.flush()
            file.write(record(5, "fifth")[20:])
            file.flush()
            log.rename(run.logs / "node-0.log.1")
            file.write(record(6, "sixth"))
            log.write_text(record(7, "seventh"))

    held = threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    assert held.wait(20)
    messages = []
    for line in follow_logs(run.path, Wanted(programs=frozenset({"node"}))):
        assert line.record is not None
        messages.append(line.record.message)
        if line.record.message == "fourth":
            seen.set()
    writer.join()
    assert messages == ["first", "fourth", "fifth", "sixth", "seventh"]


def test_following_a_run_that_has_ended_shows_it_and_ends(run: RunDirectory) -> None:
    followed = [line.raw for line in follow_logs(run.path)]
    assert sorted(followed) == sorted(line.raw for line in read_logs(run.path))


def test_a_run_without_logs_has_no_lines(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "R")
    Journal.create(run.journal).close()
    run.logs.rmdir()
    assert list(read_logs(run.path)) == []
