"""A run's replies out of its journal, in pieces that travel."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded_runs import FINISHED, Recorder, attempt

from agentsim.errors import ResultsError
from agentsim.results import recorded_replies, recording
from agentsim.rpc.messages import Attempt


def recorded(path: Path, attempts: list[Attempt]) -> Path:
    recorder = Recorder(path, agents=5, model="m")
    recorder.attempted(1, 1, [attempts])
    recorder.end(FINISHED)
    return path


def test_replies_are_what_came_back(tmp_path: Path) -> None:
    one = attempt(3, 1, "no_answer", text="Hmm – ünï", finish_reason="length", tries=2)
    (piece,) = recorded_replies(recorded(tmp_path / "r", [one]))
    (reply,) = piece
    for name in reply.__struct_fields__:
        assert getattr(reply, name) == getattr(one, name)


def test_pieces_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_REPLIES", 3)
    monkeypatch.setattr(recording, "_CHARACTERS", 10)
    texts = ["1", "2", "3", "4", "12345", "123456", "x" * 50, "7"]
    attempts = [attempt(0, i, "no_answer", text=text) for i, text in enumerate(texts)]
    pieces = list(recorded_replies(recorded(tmp_path / "r", attempts)))
    assert [[reply.text for reply in piece] for piece in pieces] == [
        ["1", "2", "3"],
        ["4", "12345"],
        ["123456"],
        ["x" * 50],
        ["7"],
    ]


def test_what_wrote_personas_is_not_replayed(tmp_path: Path) -> None:
    attempts = [attempt(0, 0, "ok", 2.0, round=0), attempt(0, 0, "ok", 1.0)]
    recorder = Recorder(tmp_path / "r", agents=1, model="m")
    recorder.attempted(1, 1, [attempts[1:]])
    recorder.attempted(1, 0, [attempts[:1]])
    recorder.end(FINISHED)
    assert [reply.round for piece in recorded_replies(tmp_path / "r") for reply in piece] == [1]


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no run is here"):
        list(recorded_replies(tmp_path / "r"))
