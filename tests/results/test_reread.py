"""Raw replies read again: what changes, in which direction, and what that does to means."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from recorded_runs import FINISHED, Recorder, attempt

from agentsim.errors import ResultsError, UserError
from agentsim.report import rereading
from agentsim.report.words import Number
from agentsim.results import read_manifest, update_manifest
from agentsim.results.reread import Chain, Reread, RoundChange, reread
from agentsim.rpc.messages import Attempt


def recorded(path: Path, attempts: Sequence[Attempt], *, attempts_allowed: int = 3) -> Path:
    recorder = Recorder(path, agents=5, model="m")
    recorder.attempted(1, 1, [attempts])
    directory = recorder.end(FINISHED)
    scenario = {**read_manifest(path)["scenario"], "replies": {"attempts": attempts_allowed}}
    update_manifest(directory, scenario=scenario)
    return path


def unchanged() -> list[Attempt]:
    return [
        attempt(0, 0, "ok", 30.0, text="Answer: 30"),
        attempt(1, 0, "no_answer", text="Hmm."),
        attempt(1, 1, "ok", 45.0, text="Answer: 45"),
        attempt(2, 0, "truncated", text="I thi", finish_reason="length"),
        attempt(2, 1, "out_of_range", text="Answer: 300", final=True),
        attempt(3, 0, "failed", text="", error="gone", finish_reason="error"),
    ]


def kinds(result: Reread) -> dict[tuple[str, str], int]:
    return dict(result.counts)


def test_replies_are_read_as_they_were(tmp_path: Path) -> None:
    result = reread(recorded(tmp_path / "r", unchanged()))
    assert (result.replies, result.failed, result.changed) == (5, 1, 0)
    assert result.rounds == [RoundChange(1, 1, 2, 2, 37.5, 37.5)]
    assert "Every reply is read as it was." in rereading.plain(result, Number())


def test_what_is_read_otherwise(tmp_path: Path) -> None:
    result = reread(
        recorded(
            tmp_path / "r",
            [
                # Read as 31 then; a value is never kept.
                attempt(0, 0, "ok", 31.0, text="Answer: 30"),
                # Its second reply stays, and its first one is the action today.
                attempt(1, 0, "no_answer", text="Answer: 12"),
                attempt(1, 1, "ok", 45.0, text="Answer: 45"),
                # It counted, and would be asked again.
                attempt(2, 0, "ok", 60.0, text="60 or 70"),
                # Asked again both then and now, in other words.
                attempt(3, 0, "no_answer", text=""),
                attempt(3, 1, "ambiguous", text="50 or 60"),
                attempt(3, 2, "ambiguous", text="Answer: 5", final=True),
            ],
        )
    )
    assert kinds(result) == {
        ("ok", "ok"): 1,
        ("no_answer", "ok"): 1,
        ("ok", "ambiguous"): 1,
        ("no_answer", "empty"): 1,
        ("ambiguous", "ok"): 1,
    }
    assert {chain: n for chain, n in result.chains.items() if chain} == {
        Chain.NOT_AGAIN: 1,
        Chain.AGAIN: 1,
        Chain.OTHERWISE: 1,
    }
    assert result.rounds == [RoundChange(1, 1, 3, 3, (31 + 45 + 60) / 3, (30 + 12 + 5) / 3)]
    first = next(result.changes())
    assert first.place == "session 1, round 1, agent 0, attempt 1"
    assert (first.value_before, first.value_after, first.text) == (31.0, 30.0, "Answer: 30")
    text = rereading.plain(result, Number())
    assert "ok 31.00 -> ok 30.00" in text
    assert "1 of them: it would have been asked again\n" in text
    assert max(map(len, text.splitlines()[1:])) <= 80


def test_the_last_attempt_is_not_followed_by_another(tmp_path: Path) -> None:
    attempts = [attempt(0, 0, "ok", 60.0, text="60 or 70")]
    result = reread(recorded(tmp_path / "r", attempts, attempts_allowed=1))
    assert kinds(result) == {("ok", "ambiguous"): 1}
    assert set(result.chains) == {Chain.SAME}


def test_the_format_is_the_recorded_one(tmp_path: Path) -> None:
    text = '{"number": 30}'
    attempts = [
        attempt(0, 0, "ok", 30.0, text=text, format="json"),
        attempt(1, 0, "ok", 7.0, text="Answer: 7", format="json"),
    ]
    assert kinds(reread(recorded(tmp_path / "r", attempts))) == {("ok", "no_answer"): 1}


def test_json_has_every_change_and_text_a_few(tmp_path: Path) -> None:
    attempts = [attempt(n, 0, "ok", 1.0, text="Answer: 2") for n in range(5)]
    result = reread(recorded(tmp_path / "r", attempts))
    data = json.loads("".join(rereading.as_json(result)))
    assert (data["changed"], len(data["changes"])) == (5, 5)
    assert data["changes"][4]["where"]["agent"] == 4
    assert rereading.plain(result, Number()).count("| Answer: 2") == 3


def test_a_reply_cannot_steer_the_terminal(tmp_path: Path) -> None:
    attempts = [attempt(0, 0, "ok", 1.0, text="\x1b[2JAnswer: 2 " + "x" * 500)]
    text = rereading.plain(reread(recorded(tmp_path / "r", attempts)), Number())
    assert "\x1b" not in text
    assert "x…" in text


def test_scripted_players_have_no_replies(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", agents=4)
    recorder.scripted(1, 1, [10, 20, 30, 40])
    recorder.end(FINISHED)
    result = reread(tmp_path / "r")
    assert (result.replies, result.rounds) == (0, [])
    assert "nothing to read" in rereading.plain(result, Number())


def test_programs_read_their_own_replies(tmp_path: Path) -> None:
    path = recorded(tmp_path / "r", unchanged())
    scenario = {**read_manifest(path)["scenario"], "workflow": "a:b"}
    update_manifest(Recorder(tmp_path / "other", agents=1).directory, scenario=scenario)
    with pytest.raises(UserError, match="its own"):
        reread(tmp_path / "other")


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no run is here"):
        reread(tmp_path / "r")
