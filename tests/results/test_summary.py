from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from recorded_runs import FINISHED, RULE, Recorder, attempt, language_run

from agentsim.results import (
    RunDirectory,
    RunEnd,
    TableWriter,
    compact,
    read_summary,
    summarise,
    write_summary,
)
from agentsim.results import parts as parts_module


def test_a_run_of_a_language_model_by_hand(tmp_path: Path) -> None:
    summary = summarise(language_run(tmp_path / "r"))
    assert summary["run"] == {
        "id": "r1",
        "name": "guess-two-thirds",
        "state": "finished",
        "reason": "",
        "started": summary["run"]["started"],
        "wall_s": 10.0,
        "cpu_s": 3.0,
        "rounds_expected": 1,
        "rounds_settled": 1,
        "starts": 1,
        "resumes": 0,
        "restarts": 0,
        "moves": 0,
        "stale": 0,
        "disk_full": 0,
    }
    assert summary["actions"] == {
        "expected": 5,
        "settled": 5,
        "valid": 3,
        "missing": 2,
        "valid_share": 0.6,
        "statuses": {"ok": 3, "truncated": 1, "failed": 1},
    }
    by_attempt = [
        {"attempt": 1, "statuses": {"ok": 2, "truncated": 1, "no_answer": 1}},
        {"attempt": 2, "statuses": {"ok": 1, "truncated": 1}},
    ]
    assert summary["attempts"] == {"total": 6, "by_attempt": by_attempt}
    # Completion tokens: agents 0 and 2 once (10, 12), agents 1 and 3 twice (11, 13).
    tokens = {"prompt": 600, "completion": 70}
    assert summary["tokens"] == tokens | {"total": 670}
    assert summary["tokens_per_s"] == 7.0
    assert summary["reasons"] == [
        {"status": "truncated", "reason": "truncated it was", "count": 2},
        {"status": "no_answer", "reason": "no_answer it was", "count": 1},
    ]
    assert summary["rounds"] == [
        {
            "session": 1,
            "round": 1,
            "n": 5,
            "valid": 3,
            "missing": 2,
            "mean": 45.0,
            "sd": 15.0,
            "min": 30.0,
            "q1": 37.5,
            "median": 45.0,
            "q3": 52.5,
            "max": 60.0,
            "target": 30.0,
            "winning_guess": 30.0,
            "winners": 1,
            "statuses": {"ok": 3, "truncated": 1, "failed": 1},
            "statuses_by_attempt": by_attempt,
            "first_attempt": {"n": 2, "mean": 45.0},
            "final": {"n": 3, "mean": 45.0},
            "bounds": {
                "mean_low": 27.0,
                "mean_high": 67.0,
                "target_low": pytest.approx(18.0),
                "target_high": pytest.approx(67 * 2 / 3),
            },
            "tokens": tokens,
            # Latencies 0.5, 0.625, 0.625, 0.75, 0.875, 0.875.
            "latency_s": {"median": 0.6875, "p95": 0.875},
            "wall_s": 1.5,
        }
    ]
    assert summary["over_sessions"] == [
        {
            "round": 1,
            "sessions": 1,
            "mean_of_means": 45.0,
            "sd_between_sessions": None,
            "low": None,
            "high": None,
        }
    ]


def test_scripted_players_have_one_attempt_and_no_tokens(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=4, people={"source": "s", "means": [1]})
    recorder.scripted(1, 1, [1.0, 2.0, 4.0, 9.0])
    summary = summarise(recorder.end(FINISHED))
    (round,) = summary["rounds"]
    assert round["statuses_by_attempt"] == [{"attempt": 1, "statuses": {"ok": 4}}]
    assert round["first_attempt"] == round["final"] == {"n": 4, "mean": 4.0}
    assert round["bounds"]["mean_low"] == round["bounds"]["mean_high"] == 4.0
    assert (round["tokens"], round["latency_s"]) == (None, None)
    assert (summary["tokens"], summary["tokens_per_s"], summary["reasons"]) == (None, None, [])
    assert summary["attempts"]["total"] == 4
    assert summary["people"] == {"source": "s", "means": [1]}


def test_first_attempts_differ_from_final_ones(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=2)
    batch = [
        attempt(0, 0, "ok", 10.0),
        attempt(1, 0, "empty"),
        attempt(1, 1, "ok", 50.0),
    ]
    recorder.attempted(1, 1, [batch])
    (round,) = summarise(recorder.end(FINISHED))["rounds"]
    assert round["first_attempt"] == {"n": 1, "mean": 10.0}
    assert round["final"] == {"n": 2, "mean": 30.0}


def test_sessions_are_compared_round_by_round(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=2, sessions=3, rounds=2, hold_rows=4)
    for round in (1, 2):
        for session in (2, 1, 3):
            recorder.scripted(session, round, [10.0 * session / round, 20.0 * session / round])
    summary = summarise(recorder.end(FINISHED))
    keys = [(row["session"], row["round"]) for row in summary["rounds"]]
    assert keys == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]
    first, second = summary["over_sessions"]
    assert (first["round"], first["sessions"], first["mean_of_means"]) == (1, 3, 30.0)
    assert first["sd_between_sessions"] == 15.0
    assert second["mean_of_means"] == 15.0
    assert first["low"] < 30.0 < first["high"]


def test_a_round_without_valid_answers_has_nulls_and_full_bounds(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=2)
    recorder.attempted(1, 1, [[attempt(a, 0, "empty", final=True) for a in (0, 1)]])
    directory = recorder.end(FINISHED)
    (round,) = write_summary(directory)["rounds"]
    for name in ("mean", "sd", "median", "target", "winning_guess"):
        assert round[name] is None
    assert round["bounds"] == {
        "mean_low": 0.0,
        "mean_high": 100.0,
        "target_low": 0.0,
        "target_high": pytest.approx(200 / 3),
    }
    text = directory.summary.read_text()
    assert json.loads(text, parse_constant=pytest.fail)["over_sessions"][0]["sessions"] == 0


def test_what_is_written_is_what_was_computed(tmp_path: Path) -> None:
    directory = language_run(tmp_path / "r")
    contents = write_summary(directory)
    assert read_summary(directory.path) == contents == summarise(directory)


def test_merging_files_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "MANY_PARTS", 2)
    monkeypatch.setattr(parts_module, "_PART_ROWS", 7)
    recorder = Recorder(tmp_path / "r", agents=3, rounds=6, hold_rows=0)
    for round in range(1, 7):
        batch = [attempt(a, 0, "ok", float(a * round), round=round) for a in (2, 0, 1)]
        recorder.attempted(1, round, [batch])
    directory = recorder.end(FINISHED)
    before = summarise(directory)
    compact(directory)
    assert len(list(directory.actions.iterdir())) == 2
    assert summarise(directory) == before


@pytest.mark.parametrize("end", [None, RunEnd("failed", "no more tokens", wall_s=2.0)])
def test_a_run_that_did_not_finish_says_so(tmp_path: Path, end: RunEnd | None) -> None:
    recorder = Recorder(tmp_path / "r", agents=2, rounds=3)
    recorder.scripted(1, 1, [1.0, 2.0])
    directory = recorder.directory
    recorder.writer.flush()
    assert summarise(directory)["run"]["state"] == "running"
    recorder.end(end)
    run = summarise(directory)["run"]
    assert run["state"] == ("failed" if end else "interrupted")
    assert run["reason"] == ("no more tokens" if end else "")
    assert (run["rounds_settled"], run["rounds_expected"]) == (1, 3)
    assert summarise(directory)["actions"]["expected"] == 6


def test_a_run_without_any_settled_round(tmp_path: Path) -> None:
    summary = summarise(Recorder(tmp_path / "r", agents=2).end(None))
    assert summary["rounds"] == []
    assert summary["actions"]["valid_share"] is None
    assert summary["attempts"] == {"total": 0, "by_attempt": []}


def test_many_rows_are_summarised_as_numpy_would(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    values = random.uniform(0, 100, 150_000)
    statuses = ["ok", "no_answer", "out_of_range"]
    kinds = random.choice(3, 150_000, p=[0.9, 0.06, 0.04])
    from agentsim.results import RoundColumns
    from agentsim.rpc.messages import Settle

    recorder = Recorder(tmp_path / "r", agents=150_000)
    columns = RoundColumns(
        agents=np.arange(150_000, dtype=np.uint32),
        values=np.where(kinds == 0, values, np.nan),
        statuses=np.array([0, 3, 5], np.uint8)[kinds],
        won=np.zeros(150_000, np.bool_),
        payoffs=np.zeros(150_000),
        attempts=np.ones(150_000, np.int16),
        model="m",
    )
    settle = Settle(1, 1, 150_000, {}, 1.0, 1.0, 1.0, 1.0, [], [], {}, 1.0)
    TableWriter(recorder.directory).write(columns, [], settle)
    (round,) = summarise(recorder.end(FINISHED))["rounds"]
    valid = values[kinds == 0]
    assert round["valid"] == len(valid)
    assert round["mean"] == pytest.approx(valid.mean(), rel=1e-12)
    assert round["sd"] == pytest.approx(valid.std(ddof=1), rel=1e-12)
    assert round["q1"] == np.percentile(valid, 25)
    assert round["statuses"] == {name: int((kinds == i).sum()) for i, name in enumerate(statuses)}
    missing = 150_000 - len(valid)
    assert round["bounds"]["mean_high"] == pytest.approx(
        (valid.sum() + missing * RULE["high"]) / 150_000
    )


def test_a_manifest_without_a_rule_gives_no_bounds(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=1, rule=None)
    recorder.scripted(1, 1, [1.0])
    assert summarise(recorder.end(FINISHED))["rounds"][0]["bounds"] is None
    assert RunDirectory.open(tmp_path / "r")
