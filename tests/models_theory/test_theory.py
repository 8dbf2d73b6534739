"""Theory against published figures, and against games solved by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentsim.errors import UserError
from agentsim.models import theory
from agentsim.models.rule import Rule
from agentsim.models.theory import NoBestReplyError

HUMAN: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "human_results.yaml").read_text(encoding="utf-8")
)
MANY = 10**9
TWO_THIRDS = Rule.of(0, 100, "2/3 * mean", ["mean", "target"])


def rounded(numbers: list[float]) -> list[float]:
    return [round(number, 2) for number in numbers]


@pytest.mark.parametrize(
    ("tau", "mean"), HUMAN["theory"]["cognitive_hierarchy_mean_by_tau"].items()
)
def test_first_round_of_the_cognitive_hierarchy(tau: float, mean: float) -> None:
    levels = theory.poisson_levels(tau, spread=10)
    assert rounded(theory.expected_means(levels, TWO_THIRDS, MANY, 1)) == [mean]


@pytest.mark.parametrize(("tau", "mean"), HUMAN["theory"]["n_18_own_guess_counted"].items())
def test_own_guess_counts_in_a_small_market(tau: float, mean: float) -> None:
    levels = theory.poisson_levels(tau, spread=10)
    assert rounded(theory.expected_means(levels, TWO_THIRDS, 18, 1)) == [mean]


@pytest.mark.parametrize("announce", [["mean"], ["target"], ["mean", "target"], ["target", "mean"]])
def test_later_rounds_start_from_the_announced_mean(announce: list[str]) -> None:
    rule = Rule.of(0, 100, "2/3 * mean", announce)
    means = theory.expected_means(theory.poisson_levels(1.5, spread=10), rule, MANY, 4)
    assert rounded(means) == [33.50, 22.44, 15.04, 10.07]


@pytest.mark.parametrize("announce", [[], ["winning_guess"], ["median"]])
def test_every_round_is_like_the_first_when_no_mean_is_known(announce: list[str]) -> None:
    rule = Rule.of(0, 100, "2/3 * mean", announce)
    means = theory.expected_means(theory.poisson_levels(1.5, spread=10), rule, MANY, 3)
    assert rounded(means) == [33.50, 33.50, 33.50]
    assert theory.centre(rule, {"median": 20.0, "winning_guess": 30.0}) is None


def test_level_means() -> None:
    four = theory.given_levels({"0": 0.25, "1": 0.25, "2": 0.25, "3": 0.25}, spread=10)
    means = theory.level_means(four, TWO_THIRDS, MANY, 50)
    assert rounded(means.tolist()) == HUMAN["theory"]["level_k"]


def test_level_means_of_the_cognitive_hierarchy() -> None:
    levels = theory.poisson_levels(1.5, spread=10)
    means = theory.level_means(levels, TWO_THIRDS, MANY, 50)
    assert rounded(means[:4].tolist()) == HUMAN["theory"]["ch_levels_at_tau_1_5"]


def test_poisson_shares() -> None:
    shares = theory.poisson_levels(1.5, spread=10).shares
    assert shares.sum() == pytest.approx(1, abs=1e-15)
    assert shares[:4] == pytest.approx([0.22313, 0.33470, 0.25102, 0.12551], abs=1e-5)
    assert shares @ np.arange(shares.size) == pytest.approx(1.5)
    assert theory.poisson_levels(20, spread=10).shares @ np.arange(101) == pytest.approx(20)


@given(
    p=st.floats(-1.5, 1.9),
    b=st.floats(-20, 60),
    n=st.integers(3, 50),
    mean=st.floats(0, 100),
)
def test_a_best_reply_hits_the_target_that_it_makes(
    p: float, b: float, n: int, mean: float
) -> None:
    rule = Rule(0, 100, "p * mean + b", (), p, b)
    guess = theory.best_reply(rule, mean, n)
    target = p * ((n - 1) * mean + guess) / n + b
    if 0 < guess < 100:
        assert guess == pytest.approx(target, abs=1e-6)
    else:  # at an end of the range the target lies beyond it
        assert target <= 1e-6 if guess == 0 else target >= 100 - 1e-6


@given(
    p=st.floats(-2, 0.99),
    b=st.floats(-20, 60),
    mine=st.floats(0, 100),
    theirs=st.floats(0, 100),
)
def test_a_dominant_guess_never_loses_against_one_other(
    p: float, b: float, mine: float, theirs: float
) -> None:
    best = theory.dominant(Rule(0, 100, "", (), p, b))
    assert best is not None
    target = p * (best + theirs) / 2 + b
    assert abs(best - target) <= abs(theirs - target) + 1e-9


@pytest.mark.parametrize(
    ("target", "guess"),
    [
        ("2/3 * mean", 0),
        ("5 + mean / 2", 10),
        ("4/3 * mean", 100),
        ("mean + 1", 100),
        ("mean - 1", 0),
        ("2 * mean - 100", 0),
        ("mean", None),
        ("2 * mean - 50", None),
        ("2/3 * median", None),
    ],
)
def test_dominant_guess_of_two_players(target: str, guess: float | None) -> None:
    assert theory.dominant(Rule.of(0, 100, target)) == guess


def test_two_players_of_any_level_above_0_play_the_dominant_guess() -> None:
    levels = theory.poisson_levels(1.5, spread=10)
    means = theory.level_means(levels, TWO_THIRDS, 2, 50)
    assert means[0] == 50
    assert not means[1:].any()


def test_one_player_guesses_the_fixed_point() -> None:
    assert theory.best_reply(Rule.of(0, 100, "5 + mean / 2"), 80, 1) == 10


def test_replies_stay_in_the_range() -> None:
    levels = theory.given_levels({"3": 1.0}, spread=10)
    means = theory.level_means(levels, Rule.of(0, 100, "4/3 * mean"), MANY, 50)
    assert rounded(means.tolist()) == [50, 66.67, 88.89, 100]


@pytest.mark.parametrize(
    ("target", "n", "words"),
    [
        ("2/3 * median", 18, "p * mean"),
        ("mean * mean / 100", 18, "p * mean"),
        ("2/3 * mean * n/(n+1)", 18, "p * mean"),
        ("3 * mean", 3, "below the 3 players"),
        ("mean", 1, "below the 1 players"),
        ("mean", 2, "2 players"),
    ],
)
def test_no_best_reply(target: str, n: int, words: str) -> None:
    with pytest.raises(NoBestReplyError, match=words.replace("*", r"\*")):
        theory.check(Rule.of(0, 100, target), n)


@pytest.mark.parametrize(
    ("around", "half"), [(None, 50), (50, 10), (4, 4), (97, 3), (0, 0), (100, 0)]
)
def test_guesses_of_level_0_keep_their_mean_and_stay_in_the_range(
    around: float | None, half: float
) -> None:
    levels = theory.poisson_levels(1.5, spread=10)
    assert theory.half_width(levels, TWO_THIRDS, around) == half


def test_the_mean_is_told_apart_from_the_target() -> None:
    assert theory.centre(TWO_THIRDS, {"target": 20.0}) == pytest.approx(30)
    assert theory.centre(TWO_THIRDS, {"target": 20.0, "mean": 31.0}) == 31
    assert theory.centre(Rule.of(0, 100, "5 + mean / 2"), {"target": 20.0}) == 30
    # A target that is the same for every mean says nothing of the mean.
    assert theory.centre(Rule.of(0, 100, "50"), {"target": 50.0}) is None


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"one": 1.0}, "`one`"),
        ({"-1": 1.0}, "`-1`"),
        ({"101": 1.0}, "`101`"),
        ({"1.5": 1.0}, "`1.5`"),
        ({"²": 1.0}, "`²`"),
        ({"0": 0.5, "1": 0.4}, "sum to 0.9"),
    ],
)
def test_wrong_levels_are_refused(shares: dict[str, float], words: str) -> None:
    with pytest.raises(UserError, match=words):
        theory.given_levels(shares, spread=10)
