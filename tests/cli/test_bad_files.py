"""Each folder of `bad_files` is files that are wrong, and what is said about them.

A file that is wrong starts nothing, whichever command reads it, and no secret in it is printed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from snapshots import BAD_FILES, Played, arguments, expected, play

SECRET = "do-not-print-me"
cases = pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)


@cases
def test_what_is_wrong_is_said(case: Path) -> None:
    assert play(case, arguments(case)) == expected(case)


@cases
def test_a_run_says_the_same_and_starts_nothing(case: Path) -> None:
    args = arguments(case)[1:]
    assert play(case, ["run", *args, "--out", "here/run"]) == expected(case)


@cases
def test_secrets_are_never_printed(case: Path) -> None:
    args = arguments(case)
    for played in (play(case, args), play(case, [*args, "--error-format", "json"])):
        assert SECRET not in played.out + played.err


def test_the_secrets_are_there_to_be_printed() -> None:
    planted = [
        case.name
        for case in BAD_FILES
        if any(SECRET in path.read_text("utf-8", "replace") for path in case.iterdir())
    ]
    assert len(planted) >= 8, planted


def test_there_are_enough_cases() -> None:
    assert len(BAD_FILES) > 60


def test_a_changed_word_would_be_seen() -> None:
    said = expected(BAD_FILES[0])
    assert said != Played(said.code, said.out, said.err.replace("error", "mistake"), said.made)
    assert said != Played(said.code, said.out, said.err, ("runs",))
