"""Equilibria by hand, and in words."""

from __future__ import annotations

import pytest

from agentsim.games.guess_average import GuessAverageSpec, equilibrium


def of(target: str, n: int = 40, low: float = 0.0, high: float = 100.0) -> tuple[float, ...]:
    spec = GuessAverageSpec(type="guess_average", target=target, range=(low, high))
    return equilibrium(spec, n).guesses


@pytest.mark.parametrize(
    ("target", "guesses"),
    [
        ("2/3 * mean", (0,)),
        ("51/100 * mean", (0,)),
        ("5 + mean / 2", (10,)),
        ("2/3 * median", (0,)),
        ("(mean + median) / 3 + 10", (30,)),
        ("100 - mean", (50,)),
        ("mean / 2 - 5", (0,)),
        ("mean / 2 + 90", (100,)),
        ("mean", ()),
        ("mean + 5", (100,)),
        ("mean - 5", (0,)),
        ("4/3 * mean", (0, 100)),
        ("2 * mean - 50", (0, 50, 100)),
        ("2 * mean + 1", (100,)),
        ("2 * mean - 101", (0,)),
        ("70", (70,)),
    ],
)
def test_fixed_points(target: str, guesses: tuple[float, ...]) -> None:
    assert of(target) == pytest.approx(guesses)


def test_fixed_points_are_bounded_to_the_range() -> None:
    assert of("2/3 * mean", low=20.0) == (20,)
    assert of("5 + mean / 2", high=8.0) == (8,)


@pytest.mark.parametrize(
    ("target", "guesses"),
    [
        ("mean * mean / 100", (0, 100)),
        ("2/3 * mean * n/(n+1)", (0,)),
        ("mean ** 2 / 50 + 8", (10, 40, 100)),
        # At 50.01 the target jumps from below to above the guess, which is no equilibrium.
        ("10 / (mean - 50.01)", (0.0, (50.01 + (50.01**2 + 40) ** 0.5) / 2)),
    ],
)
def test_fixed_points_by_calculation(target: str, guesses: tuple[float, ...]) -> None:
    assert of(target) == pytest.approx(guesses, abs=1e-6)


@pytest.mark.parametrize(
    ("target", "n", "guesses"),
    [
        ("2/3 * mean", 2, (0,)),
        ("4/3 * mean", 2, (100,)),
        ("4/3 * mean", 3, (0, 100)),
        ("5 + mean / 2", 2, (10,)),
        ("2/3 * mean", 1, ()),
    ],
)
def test_small_markets(target: str, n: int, guesses: tuple[float, ...]) -> None:
    assert of(target, n) == guesses


@pytest.mark.parametrize(
    ("target", "n", "words"),
    [
        ("2/3 * mean", 40, "0"),
        ("5 + mean / 2", 40, "10"),
        ("mean + 5", 40, "100, an end of the range"),
        ("mean", 40, "every number is an equilibrium if all guess it"),
        ("4/3 * mean", 40, "0 and 100; best replies move away from 0"),
        ("2 * mean - 50", 40, "0, 50 and 100; best replies move away from 50"),
        ("100 - mean", 40, "50; repeated best replies do not lead to it"),
        ("mean * mean / 100", 40, "0 and 100, found by calculation"),
        ("2/3 * mean", 2, "with two players 0 is dominant: it never loses"),
        ("2/3 * mean", 1, "with one player every guess wins"),
    ],
)
def test_in_words(target: str, n: int, words: str) -> None:
    spec = GuessAverageSpec(type="guess_average", target=target)
    assert equilibrium(spec, n).words == words
