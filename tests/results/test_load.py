from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_runs import FINISHED, Recorder, language_run

from agentsim.errors import ResultsError
from agentsim.results import load_run, write_summary


def test_frames_of_a_run(tmp_path: Path) -> None:
    directory = language_run(tmp_path / "r")
    pq.write_table(pa.table({"agent": [0], "age": [41]}), directory.personas)
    run = load_run(str(directory.path))
    assert run.state == "finished"
    assert repr(run) == f"Run('{directory.path}', state='finished')"
    assert run.manifest["run_id"] == "r1"
    assert run.summary["actions"]["valid"] == 3
    assert run.actions["value"].isna().sum() == 2
    assert run.requests["messages"][0][0] == {"role": "system", "content": "the rules"}
    assert run.announcements["mean"].tolist() == [45.0]
    assert run.announcements["announced"][0] == [("mean", 45.0), ("target", 30.0)]
    assert run.personas["age"].tolist() == [41]
    assert isinstance(run.actions, pd.DataFrame)
    assert run.actions is run.actions, "read once"
    assert run.table("actions").num_rows == 5


def test_values_of_one_round(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=3, sessions=2, rounds=2, hold_rows=7)
    for round in (1, 2):
        for session in (2, 1):
            recorder.scripted(session, round, [session, round, 50.0])
    run = load_run(recorder.end(FINISHED).path)
    for session in (1, 2):
        for round in (1, 2):
            assert run.values(session, round).tolist() == [session, round, 50.0]
    values = load_run(language_run(tmp_path / "l").path).values(1, 1)
    np.testing.assert_array_equal(values, [30.0, 45.0, 60.0, np.nan, np.nan])
    assert values.dtype == np.float64
    with pytest.raises(ResultsError, match="round 3 of session 1 is not settled"):
        run.values(1, 3)


def test_rows_are_in_order_however_the_files_are_cut(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=2, sessions=3, rounds=2, hold_rows=4)
    for round in (1, 2):
        for session in (3, 1, 2):
            recorder.scripted(session, round, [session, round])
    frame = load_run(recorder.end(FINISHED).path).actions
    keys = list(zip(frame["session"], frame["round"], frame["agent"], strict=True))
    assert keys == sorted(keys)
    assert len(set(keys)) == 12


def test_tables_that_a_run_does_not_have_are_empty(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=1)
    recorder.scripted(1, 1, [1.0])
    run = load_run(recorder.end(FINISHED).path)
    assert run.personas.empty
    assert run.requests.empty
    assert "finish_reason" in run.requests.columns
    with pytest.raises(ResultsError, match="no table 'guesses'; tables are actions"):
        run.table("guesses")


def test_a_run_that_goes_on_can_be_read(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=2, rounds=2, hold_rows=0)
    assert load_run(tmp_path / "r").actions.empty
    recorder.scripted(1, 1, [1.0, 2.0])
    run = load_run(tmp_path / "r")
    assert run.state == "running"
    assert run.actions["value"].tolist() == [1.0, 2.0]
    assert run.summary["run"]["state"] == "running"
    recorder.end(None)
    assert load_run(tmp_path / "r").state == "interrupted"
    assert run.state == "running", "what it was when it was loaded"


def test_the_written_summary_is_used_once_the_run_has_finished(tmp_path: Path) -> None:
    directory = language_run(tmp_path / "r")
    write_summary(directory)
    directory.summary.write_text('{"from": "file"}')
    assert load_run(directory.path).summary == {"from": "file"}


def test_a_summary_from_before_the_end_is_not_used(tmp_path: Path) -> None:
    directory = Recorder(tmp_path / "r", agents=1).end(None)
    directory.summary.write_text('{"from": "file"}')
    assert load_run(directory.path).summary["run"]["state"] == "interrupted"


def test_what_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="does not exist"):
        load_run(tmp_path / "nowhere")
    with pytest.raises(ResultsError, match="no run is here"):
        load_run(tmp_path)
    directory = language_run(tmp_path / "r")
    directory.journal.write_bytes(b"something else altogether")
    with pytest.raises(ResultsError, match="not a journal"):
        load_run(directory.path)
    directory.journal.unlink()
    with pytest.raises(ResultsError, match=r"journal\.log"):
        load_run(directory.path)


def test_a_damaged_personas_file_is_named(tmp_path: Path) -> None:
    directory = language_run(tmp_path / "r")
    directory.personas.write_bytes(b"PAR1")
    with pytest.raises(ResultsError, match=r"personas\.parquet"):
        _ = load_run(directory.path).personas
