"""Numbers and targets in words."""

from __future__ import annotations

import pytest

from agentsim.games.guess_average.words import decimals_for, plain, target_in_words

AVERAGE = "the average of all numbers"
MEDIAN = "the median of all numbers (the middle one when they are sorted)"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (100.0, "100"),
        (33.33333333333333, "33.33"),
        (33.5, "33.5"),
        (0.004, "0"),
        (-0.001, "0"),
        (-2.5, "-2.5"),
        (1e6, "1000000"),
        (99.999, "100"),
    ],
)
def test_plain_numbers(number: float, text: str) -> None:
    assert plain(number) == text


def test_no_decimals_leave_the_zeros_of_whole_numbers_alone() -> None:
    assert plain(1200.0, 0) == "1200"


@pytest.mark.parametrize(
    ("low", "high", "decimals"), [(0, 100, 2), (0, 10, 2), (0, 1, 3), (0, 0.01, 5), (-5, 1e6, 2)]
)
def test_decimals_fit_the_range(low: float, high: float, decimals: int) -> None:
    assert decimals_for(low, high) == decimals


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("2/3 * mean", f"two thirds of {AVERAGE}"),
        ("mean / 2", f"half of {AVERAGE}"),
        ("1/3 * mean", f"one third of {AVERAGE}"),
        ("0.75 * mean", f"three quarters of {AVERAGE}"),
        ("4/3 * mean", f"four thirds of {AVERAGE}"),
        ("51/100 * mean", f"51/100 of {AVERAGE}"),
        ("0.6667 * mean", f"0.6667 times {AVERAGE}"),
        ("2 * mean", f"2 times {AVERAGE}"),
        ("mean", AVERAGE),
        ("5 + mean / 2", f"5 plus half of {AVERAGE}"),
        ("mean / 2 - 5", f"half of {AVERAGE}, minus 5"),
        ("100 - mean", f"100 minus {AVERAGE}"),
        ("2/3 * median", f"two thirds of {MEDIAN}"),
        ("42", "the number 42"),
        (
            "(mean + median)/2",
            f"(mean + median)/2, where mean is {AVERAGE} and median is {MEDIAN}",
        ),
        (
            "2/3 * mean * n/(n+1)",
            f"2/3 * mean * n/(n+1), where mean is {AVERAGE} and n is the number of players",
        ),
        ("mean * mean / 100", f"mean * mean / 100, where mean is {AVERAGE}"),
    ],
)
def test_targets(target: str, words: str) -> None:
    assert target_in_words(target) == words
