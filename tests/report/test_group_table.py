"""The terminal's table by round and group."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from test_text import MANIFEST, a_round

from agentsim.report import plain
from agentsim.report.by_group import fitting_columns
from agentsim.report.words import Number


def a_group(session: int, round: int, name: str, mean: float | None, **other: Any) -> Any:
    return {
        "session": session,
        "round": round,
        "group": name,
        "n": 20,
        "valid": 0 if mean is None else 20,
        "missing": 20 if mean is None else 0,
        "mean": mean,
        "sd": None if mean is None else 12.5,
        "target": 20.0,
        "winning_guess": 21.0,
        "winners": 1,
        "statuses": {"ok": 20},
        "wall_s": 1.0,
    } | other


def summary(groups: list[Any], **rounds: Any) -> dict[str, Any]:
    keys = sorted({(row["session"], row["round"]) for row in groups})
    return {
        "run": {
            "name": "groups",
            "state": "finished",
            "reason": "",
            "wall_s": 3.0,
            "rounds_expected": len(keys),
            "rounds_settled": len(keys),
        },
        "actions": {"settled": 40, "valid": 40, "missing": 0, "statuses": {"ok": 40}},
        "attempts": {"total": 40, "by_attempt": [{"attempt": 1, "statuses": {"ok": 40}}]},
        "rounds": [a_round(session, round, 30.0, **rounds) for session, round in keys],
        "groups": groups,
        "over_sessions": [
            {
                "round": round,
                "sessions": 2,
                "mean_of_means": 30.0,
                "sd_between_sessions": 1.0,
                "low": 28.0,
                "high": 32.0,
            }
            for round in sorted({round for _, round in keys})
        ],
        "tokens": None,
        "tokens_per_s": None,
        "reasons": [],
        "people": None,
    }


def shown(contents: dict[str, Any], scope: str) -> str:
    manifest = {**copy.deepcopy(MANIFEST), "game": {"groups": {"count": 2, "scope": scope}}}
    return plain(contents, manifest, path=Path("runs/x"))


def test_one_session_by_round_and_group() -> None:
    groups = [a_group(1, 1, "1", 25.0), a_group(1, 1, "2", None, winners=0)]
    text = shown(summary(groups), "between")
    assert "by group; the group whose mean is closest to the target wins" in text
    lines = [line.split() for line in text.splitlines()]
    start = lines.index(["round", "group", "agents", "valid", "mean", "sd", "target", "won"])
    assert lines[start + 1] == ["1", "1", "20", "20", "25.00", "12.50", "20.00", "1"]
    assert lines[start + 2] == ["1", "2", "20", "0", "-", "-", "20.00", "0"]
    assert "2 groups; won: how many of a group's agents won\n" in text


def test_several_sessions_have_intervals_between_them() -> None:
    groups = [a_group(session, 1, "1", 20.0 + session) for session in (1, 2)]
    text = shown(summary(groups), "pooled")
    assert "by group; all groups play in one market" in text
    lines = [line.split() for line in text.splitlines()]
    start = lines.index(["round", "group", "agents", "valid", "mean", "interval", "target", "won"])
    assert lines[start + 1] == ["1", "1", "40", "40", "21.50", "15.15", "to", "27.85", "20.00", "2"]


def test_separate_markets_have_no_target_for_all() -> None:
    groups = [a_group(1, 1, "1", 25.0), a_group(1, 1, "2", 35.0)]
    text = shown(summary(groups, target=None, winning_guess=None, winners=3), "separate")
    head = next(line.split() for line in text.splitlines() if line.strip().startswith("round"))
    assert head == ["round", "valid", "mean", "sd", "median"]


def test_a_target_of_all_is_shown_where_there_is_one() -> None:
    text = shown(summary([a_group(1, 1, "1", 25.0)], target=None, winners=0), "pooled")
    head = next(line.split() for line in text.splitlines() if line.strip().startswith("round"))
    assert "target" not in head
    text = shown(summary([a_group(1, 1, "1", 25.0)]), "pooled")
    head = next(line.split() for line in text.splitlines() if line.strip().startswith("round"))
    assert head[-3:] == ["target", "won", "by"]


@pytest.mark.parametrize("sessions", [1, 2])
def test_it_fits_into_80_columns(sessions: int) -> None:
    names = ["a very long name of a category that somebody has", "\x1b[31mred"]
    groups = [
        a_group(session, round, name, 1234567.5 + session, target=7654321.5, n=1_000_000)
        for session in range(1, sessions + 1)
        for round in (1, 2)
        for name in names
    ]
    text = shown(summary(groups), "pooled")
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    cells = fitting_columns(summary(groups), Number(2), 78)
    assert len(cells["group"]) == 4


def test_very_many_groups_are_shortened() -> None:
    groups = [a_group(1, 1, str(i), 25.0) for i in range(1, 3001)]
    text = shown(summary(groups), "separate")
    assert len(text.splitlines()) < 50
    assert "3,000 groups" in text


def test_a_run_without_groups_has_no_such_table() -> None:
    contents = summary([a_group(1, 1, "1", 25.0)]) | {"groups": []}
    assert "by group" not in shown(contents, "pooled")
    del contents["groups"]  # of an older version
    assert "by group" not in shown(contents, "pooled")
