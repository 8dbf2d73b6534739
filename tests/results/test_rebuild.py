from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_runs import FINISHED, Recorder, attempt, language_run

from agentsim.errors import ResultsError
from agentsim.results import Journal, Kind, RunDirectory, load_run, rebuild
from agentsim.rpc import codec

TABLES = ("actions", "requests", "announcements")


def scripted_run(path: Path) -> RunDirectory:
    recorder = Recorder(path, agents=5, sessions=3, rounds=2, hold_rows=12)
    random = np.random.default_rng(1)
    for round in (1, 2):
        for session in (3, 1, 2):
            recorder.scripted(session, round, random.uniform(0, 100, 5).tolist())
    return recorder.end(FINISHED)


def rows(directory: RunDirectory) -> dict[str, pa.Table]:
    run = load_run(directory.path)
    return {name: run.table(name) for name in TABLES}


@pytest.mark.parametrize("record", [scripted_run, language_run])
def test_tables_come_back_from_the_journal_alone(
    tmp_path: Path, record: Callable[[Path], RunDirectory]
) -> None:
    directory = record(tmp_path / "r")
    before = rows(directory)
    for name in TABLES:
        for path in directory.table(name).iterdir():
            path.unlink()
        directory.table(name).rmdir()
    rebuild(directory)
    after = rows(directory)
    for name in TABLES:
        assert len(before[name]) or (record is scripted_run and name == "requests")
        assert after[name].equals(before[name]), name


def test_rebuilding_replaces_what_was_there(tmp_path: Path) -> None:
    directory = language_run(tmp_path / "r")
    before = rows(directory)
    bogus = directory.actions / "s0009-r0001.parquet"
    bogus.write_bytes((directory.actions / "s0001-r0001.parquet").read_bytes())
    rebuild(directory)
    rebuild(directory)
    assert not bogus.exists()
    assert rows(directory)["actions"].equals(before["actions"])
    assert sorted(p.name for p in directory.path.iterdir()) == sorted(
        ["manifest.json", "journal.log", "logs", *TABLES]
    )


def test_a_round_that_was_not_settled_is_left_out(tmp_path: Path) -> None:
    directory = language_run(tmp_path / "r")
    with Journal.open(directory.journal) as journal:
        late = [attempt(0, 0, "ok", 1.0, round=2), attempt(4, 0, "ok", 99.0)]
        journal.append(Kind.ATTEMPTS, codec.encode(late))
    before = rows(directory)
    rebuild(directory)
    after = rows(directory)
    assert all(after[name].equals(before[name]) for name in TABLES)


def test_a_message_with_attempts_of_several_rounds_is_taken_apart(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=1, rounds=2)
    recorder.attempted(1, 1, [[attempt(0, 0, "ok", 10.0)]])
    recorder.attempted(1, 2, [[attempt(0, 0, "ok", 20.0, round=2)]])
    directory = recorder.end(FINISHED)
    before = rows(directory)
    from agentsim.results import frames

    kept = [frame for frame in frames(directory.journal) if frame.kind is not Kind.ATTEMPTS]
    directory.journal.unlink()
    with Journal.create(directory.journal) as journal:
        journal.append(*kept[0][:2])
        both = [attempt(0, 0, "ok", 20.0, round=2), attempt(0, 0, "ok", 10.0)]
        journal.append(Kind.ATTEMPTS, codec.encode(both))
        for frame in kept[1:]:
            journal.append(*frame[:2])
    rebuild(directory)
    after = rows(directory)
    assert all(after[name].equals(before[name]) for name in TABLES)


def test_a_damaged_journal_leaves_the_tables_as_they_were(tmp_path: Path) -> None:
    directory = scripted_run(tmp_path / "r")
    before = rows(directory)
    content = bytearray(directory.journal.read_bytes())
    content[len(content) // 2] ^= 1
    directory.journal.write_bytes(content)
    with pytest.raises(ResultsError, match="damaged"):
        rebuild(directory)
    assert rows(directory)["actions"].equals(before["actions"])


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (Kind.SETTLE, b"\xc1"),
        (Kind.ANSWERS, codec.encode([1, 1, 0, b"\0", b"\0"])),
        (Kind.ANSWERS, codec.encode([1, 1, 0, b"\xff\xff\0\0", b"\0" * 8])),
        (Kind.ATTEMPTS, codec.encode([attempt(0, 7, "splendid", final=True)])),
    ],
)
def test_a_record_that_makes_no_sense_is_named(tmp_path: Path, kind: Kind, body: bytes) -> None:
    recorder = Recorder(tmp_path / "r", agents=5)
    recorder.journal.append(kind, body)
    directory = recorder.end(FINISHED)
    with pytest.raises(ResultsError, match="does not make sense"):
        rebuild(directory)


def test_a_journal_without_a_beginning_is_refused(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "r")
    with Journal.create(directory.journal) as journal:
        journal.append(Kind.ATTEMPTS, codec.encode([attempt(0, 0, "ok", 1.0)]))
    with pytest.raises(ResultsError, match="does not begin with a run's record"):
        rebuild(directory)


def test_rebuilding_a_long_run_needs_the_memory_of_a_round(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=2000, rounds=20)
    prompt = "tell me a number " * 60
    from agentsim.rpc.messages import Message

    for round in range(1, 21):
        batch = [
            attempt(
                agent, 0, "ok", 5.0, round=round, messages=[Message("user", prompt + str(agent))]
            )
            for agent in range(2000)
        ]
        recorder.attempted(1, round, [batch[:1000], batch[1000:]])
    directory = recorder.end(FINISHED)
    program = """
import sys, tracemalloc
from pathlib import Path
from agentsim.results import RunDirectory, rebuild
import pyarrow.parquet
tracemalloc.start()
rebuild(RunDirectory(Path(sys.argv[1])))
print(tracemalloc.get_traced_memory()[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(directory.path)],
        capture_output=True,
        text=True,
        check=True,
    )
    # 40,000 prompts of 1 kB are 40 MB; what waits to be written (16,384 rows) is read again.
    assert int(done.stdout) < 30_000_000
    assert pq.read_table(directory.requests, columns=["agent"]).num_rows == 40_000
