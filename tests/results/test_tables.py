from __future__ import annotations

import errno
import os
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_runs import FINISHED, Recorder, attempt, language_run

from agentsim.errors import ResultsError
from agentsim.ids import Round
from agentsim.replies import STATUSES
from agentsim.results import RoundColumns, RunDirectory, TableWriter, write_round
from agentsim.results.schema import ACTIONS, ANNOUNCEMENTS, REQUESTS
from agentsim.results.tables import part_name
from agentsim.rpc.messages import Settle

SETTLE = Settle(
    session=2,
    round=3,
    n=4,
    statuses={"ok": 2, "ambiguous": 1, "failed": 1},
    target=20.0,
    mean=30.0,
    median=30.0,
    winning_guess=20.0,
    winners=[2],
    payoffs=[100.0],
    announced={"mean": 30.0, "target": 20.0},
    wall_s=1.25,
)
COLUMNS = RoundColumns(
    agents=np.arange(4, dtype=np.uint32),
    values=np.array([40.0, np.nan, 20.0, np.nan]),
    statuses=np.array([0, 4, 0, 6], np.uint8),
    won=np.array([False, False, True, False]),
    payoffs=np.array([0.0, 0.0, 100.0, 0.0]),
    attempts=np.array([1, 3, 2, 0], np.int16),
    model="m",
    text=["40", "20 or 30", "I say 20 – twenty", None],
    prompt_tokens=np.array([5, 15, 10, 0], np.int32),
    completion_tokens=np.array([1, 3, 2, 0], np.int32),
    latency_s=np.array([0.5, 1.5, 1.0, 0.0], np.float32),
)


def test_the_schemas_are_what_readers_rely_on() -> None:
    names = pa.dictionary(pa.int32(), pa.string())
    assert {field.name: field.type for field in ACTIONS} == {
        "session": pa.int32(),
        "round": pa.int32(),
        "agent": pa.uint32(),
        "group": names,
        "status": names,
        "value": pa.float64(),
        "won": pa.bool_(),
        "payoff": pa.float64(),
        "attempts": pa.int16(),
        "text": pa.string(),
        "prompt_tokens": pa.int32(),
        "completion_tokens": pa.int32(),
        "latency_s": pa.float32(),
        "model": names,
    }
    assert " ".join(REQUESTS.names) == (
        "session round agent step attempt messages format seed text finish_reason status value"
        " reason final error prompt_tokens completion_tokens latency_s tries endpoint request_id"
        " choice worker"
    )
    assert " ".join(ANNOUNCEMENTS.names) == (
        "session round n target mean median winning_guess winners ok truncated empty no_answer"
        " ambiguous out_of_range failed announced wall_s group"
    )


def test_an_attempt_has_a_column_for_everything_it_says() -> None:
    from agentsim.rpc.messages import Attempt

    assert sorted(Attempt.__struct_fields__) == sorted(REQUESTS.names)


def test_files_have_the_schema_and_the_compression(tmp_path: Path) -> None:
    directory = language_run(tmp_path / "r")
    for table, schema in (("actions", ACTIONS), ("requests", REQUESTS)):
        path = directory.table(table) / "s0001-r0001.parquet"
        assert pq.read_schema(path).equals(schema)
        metadata = pq.read_metadata(path)
        assert {
            metadata.row_group(0).column(i).compression for i in range(metadata.num_columns)
        } == {"ZSTD"}


def test_pandas_reads_actions_without_our_help(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "r")
    write_round(directory, COLUMNS, [], SETTLE)
    frame = pd.read_parquet(directory.actions)
    assert frame["session"].tolist() == [2] * 4
    assert frame["round"].tolist() == [3] * 4
    assert frame["agent"].tolist() == [0, 1, 2, 3]
    assert frame["group"].isna().all()
    assert frame["status"].tolist() == ["ok", "ambiguous", "ok", "failed"]
    np.testing.assert_array_equal(frame["value"], [40, np.nan, 20, np.nan])
    assert frame["won"].tolist() == [False, False, True, False]
    assert frame["payoff"].tolist() == [0, 0, 100, 0]
    assert frame["attempts"].tolist() == [1, 3, 2, 0]
    assert frame["text"].tolist()[:3] == ["40", "20 or 30", "I say 20 – twenty"]
    assert frame["text"].isna().tolist() == [False, False, False, True]
    assert frame["prompt_tokens"].tolist() == [5, 15, 10, 0]
    assert frame["latency_s"].tolist() == [0.5, 1.5, 1.0, 0.0]
    assert set(frame["model"]) == {"m"}


def test_duckdb_reads_all_tables_without_our_help(tmp_path: Path) -> None:
    directory = language_run(tmp_path / "r")
    actions = duckdb.sql(
        f"select agent, status, value, attempts, prompt_tokens from '{directory.actions}/*.parquet'"
    ).fetchall()
    assert actions == [
        (0, "ok", 30.0, 1, 100),
        (1, "ok", 45.0, 2, 200),
        (2, "ok", 60.0, 1, 100),
        (3, "truncated", None, 2, 200),
        (4, "failed", None, 0, 0),
    ]
    requests = duckdb.sql(
        "select agent, attempt + 1, status, value, final, messages[1].content, seed "
        f"from '{directory.requests}/*.parquet'"
    ).fetchall()
    assert requests == [
        (0, 1, "ok", 30.0, True, "the rules", 2**64 - 1),
        (1, 1, "no_answer", None, False, "the rules", 2**64 - 2),
        (3, 1, "truncated", None, False, "the rules", 2**64 - 4),
        (2, 1, "ok", 60.0, True, "the rules", 2**64 - 3),
        (1, 2, "ok", 45.0, True, "again – ünï", 2**64 - 2),
        (3, 2, "truncated", None, True, "the rules", 2**64 - 4),
    ]
    told = duckdb.sql(
        f"select n, ok, truncated, failed, winners, announced['mean'], announced['target'] "
        f"from '{directory.announcements}/*.parquet'"
    ).fetchall()
    # `failed` is no final action: the agent never had one.
    assert told == [(5, 3, 1, 0, 1, 45.0, 30.0)]


def test_a_scripted_round_has_no_texts_tokens_or_requests(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=3)
    recorder.scripted(1, 1, [1.0, 2.0, 3.0])
    directory = recorder.end(FINISHED)
    frame = pd.read_parquet(directory.actions)
    assert frame["value"].tolist() == [1.0, 2.0, 3.0]
    assert frame["attempts"].tolist() == [1, 1, 1]
    for name in ("text", "prompt_tokens", "completion_tokens", "latency_s", "group"):
        assert frame[name].isna().all()
    assert list(directory.requests.iterdir()) == []


def test_a_round_without_any_valid_answer_is_written(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=1)
    recorder.attempted(1, 1, [[attempt(0, 0, "empty", final=True)]])
    directory = recorder.end(FINISHED)
    row = pq.read_table(directory.announcements).to_pylist()[0]
    assert row["mean"] is None
    assert row["announced"] == []
    assert row["empty"] == 1


def test_small_rounds_share_a_file_and_stay_in_order(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=3, sessions=2, rounds=2, hold_rows=100)
    for round in (1, 2):
        for session in (2, 1):
            recorder.scripted(session, round, [session, round, 0.0])
    assert list(recorder.directory.actions.iterdir()) == []
    directory = recorder.end(FINISHED)
    assert [path.name for path in directory.actions.iterdir()] == [
        "s0001-r0001_s0002-r0002.parquet"
    ]
    frame = pd.read_parquet(directory.actions)
    keys = list(zip(frame["session"], frame["round"], frame["agent"], strict=True))
    assert keys == sorted(keys)
    assert len(keys) == 12


def test_a_large_round_does_not_wait(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=3, rounds=2, hold_rows=3)
    recorder.scripted(1, 1, [1.0, 2.0, 3.0])
    assert [path.name for path in recorder.directory.actions.iterdir()] == ["s0001-r0001.parquet"]
    recorder.end(FINISHED)


def test_dictionaries_of_different_rounds_are_joined(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=1, rounds=2)
    for round, endpoint in ((1, "http://b"), (2, "http://a")):
        recorder.attempted(1, round, [[attempt(0, 0, "ok", 1.0, round=round, endpoint=endpoint)]])
    directory = recorder.end(FINISHED)
    assert pd.read_parquet(directory.requests)["endpoint"].tolist() == ["http://b", "http://a"]


def test_rows_cross_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentsim.results.rows.ROW_GROUP_ROWS", 3)
    monkeypatch.setattr("agentsim.results.tables.ROW_GROUP_ROWS", 3)
    monkeypatch.setattr("agentsim.results.rows._REQUEST_BATCH_ROWS", 2)
    recorder = Recorder(tmp_path / "r", agents=8)
    recorder.attempted(1, 1, [[attempt(a, 0, "ok", float(a)) for a in (*range(8), *range(8))]])
    directory = recorder.end(FINISHED)
    path = directory.actions / "s0001-r0001.parquet"
    assert pq.read_metadata(path).num_row_groups == 3
    assert pd.read_parquet(path)["text"].tolist() == [f"I guess {float(a)}" for a in range(8)]
    assert pd.read_parquet(directory.requests)["agent"].tolist() == list(range(8))


def test_writing_a_round_again_replaces_it(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "r")
    write_round(directory, COLUMNS, [attempt(0, 0, "ok", 1.0)], SETTLE)
    assert len(list(directory.requests.iterdir())) == 1
    write_round(directory, COLUMNS, [], SETTLE)
    assert len(pd.read_parquet(directory.actions)) == 4
    assert list(directory.requests.iterdir()) == []


def test_names_sort_by_session_and_round() -> None:
    assert part_name(Round(1, 2), Round(1, 2)) == "s0001-r0002.parquet"
    assert part_name(Round(1, 2), Round(12345, 1)) == "s0001-r0002_s12345-r0001.parquet"


def test_a_full_disk_leaves_no_half_file_and_keeps_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = RunDirectory.create(tmp_path / "r")
    writer = TableWriter(directory, hold_rows=1000)
    writer.write(COLUMNS, [], SETTLE)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", full)
        with pytest.raises(ResultsError, match="disk is full"):
            writer.flush()
    assert list(directory.actions.iterdir()) == []
    writer.flush()
    assert len(pd.read_parquet(directory.actions)) == 4


def test_statuses_are_written_by_their_index() -> None:
    assert [str(STATUSES[i]) for i in (0, 4, 6)] == ["ok", "ambiguous", "failed"]


def test_a_run_does_not_import_pandas(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from recorded_runs import language_run
from agentsim.results import load_run, rebuild, write_summary
directory = language_run(Path(sys.argv[1]))
write_summary(directory)
rebuild(directory)
assert len(load_run(directory.path).values(1, 1)) == 5
assert "pandas" not in sys.modules, "it costs 0.3 s"
"""
    here = str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "r"), here], check=True)
