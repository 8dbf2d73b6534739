"""What the end of a run and its page say of a replay."""

from __future__ import annotations

from typing import Any

import pytest

from agentsim.report import caution

MANIFEST = {
    "scenario": {"model": {"backend": "replay", "run": "/r"}, "prompt": "character"},
    "replay": {"run": "/r", "run_id": "a", "model": "smollm2-135m-instruct"},
}
FIRST = {
    "place": "session 1, round 2, agent 7, attempt 1",
    "what": "message 2 (user)",
    "at": 120,
    "left": "was 23.41",
    "right": "was \x1b[2J23.42",
}


def summary(**replay: Any) -> dict[str, Any]:
    counts = {"requests": 10, "same": 10, "other": 0, "unrecorded": 0, "unused": 0}
    return {
        "replay": {"run": "/r", "first": [], "problem": "", **counts, **replay},
        "attempts": {"total": 10, "by_attempt": [{"attempt": 1, "statuses": {"truncated": 5}}]},
    }


def said(**replay: Any) -> str:
    return "\n".join(caution.warnings(summary(**replay), MANIFEST))


def test_a_replay_that_asks_the_same_says_so_and_warns_of_nothing() -> None:
    assert caution.replayed(summary()) == (
        "replies of /r, given again; all of 10 prompts are those of that run"
    )
    assert "prompts" not in said()


def test_the_first_other_prompt_is_shown_and_cannot_steer_the_terminal() -> None:
    words = said(same=8, other=2, first=[FIRST])
    assert "2 of 10 prompts are not those that were recorded" in words
    assert "first: session 1, round 2, agent 7, attempt 1: message 2 (user), character 120" in words
    assert "recorded: was 23.41" in words
    assert "\x1b" not in words


@pytest.mark.parametrize(
    ("replay", "words"),
    [
        ({"unrecorded": 3}, "3 requests have no recorded reply: they failed"),
        ({"unused": 4}, "4 recorded replies were not asked for"),
        ({"problem": "/r: no run is here"}, "cannot be compared"),
    ],
)
def test_what_else_is_not_as_it_was(replay: dict[str, Any], words: str) -> None:
    assert words in said(**replay)


def test_the_model_is_the_one_that_was_replayed() -> None:
    assert caution.small_model(MANIFEST) == "135M"
    assert caution.persona_shown(MANIFEST)
    assert "raise model.max_tokens" not in said()


def test_other_runs_say_nothing() -> None:
    assert caution.replayed({"replay": None}) == caution.replayed({}) == ""
