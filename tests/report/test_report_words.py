from __future__ import annotations

import pytest
from rich.console import Console

from agentsim.report.rounds import fitting_columns
from agentsim.report.words import Number, count, duration, share, table, width_of


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0, 100, "12.35"),
        (0, 99, "12.35"),
        (0, 1, "12.3457"),
        (0, 10, "12.346"),
        (0, 1000, "12.3"),
        (-5000, 5000, "12"),
        (0, 1e9, "12"),
        (0, 1e-9, "12.345679"),
    ],
)
def test_decimals_follow_the_range(low: float, high: float, shown: str) -> None:
    assert Number.of({"low": low, "high": high})(12.3456789) == shown


def test_numbers_that_do_not_exist_are_dashes() -> None:
    number = Number.of(None)
    assert number(None) == count(None) == number.span(None, 1.0) == share(0, 0) == "-"
    assert number.span(1, 2) == "1.00 to 2.00"
    assert count(1234567) == "1,234,567"


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 10, "0 %"),
        (10, 10, "100 %"),
        (1, 3, "33.3 %"),
        (1, 2, "50 %"),
        (9999, 10000, "99.99 %"),
        (1, 10000, "0.01 %"),
        (999_999, 1_000_000, "over 99.999 %"),
        (1, 10_000_000, "under 0.001 %"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_nothing(part: int, whole: int, shown: str) -> None:
    assert share(part, whole) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (59.7, "60 s"),
        (119.4, "119 s"),
        (134.2, "2 min 14 s"),
        (7199, "119 min 59 s"),
        (7260, "2 h 1 min"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def lines(columns: dict[str, list[str]], width: int = 80) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(table(columns))
    return capture.get().splitlines()


def test_the_middle_of_a_long_table_is_left_out() -> None:
    shown = lines({"round": [str(i) for i in range(1, 101)], "x": ["y"] * 100})
    assert [line.split()[0] for line in shown] == [
        "round",
        *(str(i) for i in range(1, 16)),
        "...",
        *(str(i) for i in range(96, 101)),
    ]
    assert len(lines({"round": [str(i) for i in range(21)]})) == 22


def test_the_width_is_what_is_printed() -> None:
    columns = {"round": ["1", "20"], "mean": ["3.00", "1,000.00"]}
    assert {len(line) for line in lines(columns)} == {width_of(columns)}


def test_columns_that_do_not_fit_lose_decimals_first_and_then_those_that_matter_least() -> None:
    row = {
        "session": 1,
        "round": 1,
        "valid": 900_000_000,
        "missing": 1,
        "mean": 123456.789,
        "sd": 123456.789,
        "median": 123456.789,
        "target": 123456.789,
        "winning_guess": 123456.789,
        "winners": 10_000,
        "bounds": {"mean_low": 123456.789, "mean_high": 123456.789},
    }
    summary = {"rounds": [row], "people": None}
    whole = fitting_columns(summary, Number(2), 200)
    assert whole["mean"] == ["123,456.79"]
    fewer = fitting_columns(summary, Number(2), width_of(whole) - 1)
    assert fewer["mean"] == ["123,456.8"]
    assert list(fewer) == list(whole)
    least = fitting_columns(summary, Number(2), 50)
    assert width_of(least) <= 50
    assert list(least) == ["round", "valid", "mean", "could be"]
