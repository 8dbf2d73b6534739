"""Counts are exact, and rounding favours nobody."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.population.allocation import ladder, largest_remainder, strata

shares = st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(lambda s: sum(s) > 0)
unit = st.floats(0, 1, exclude_max=True)


def exact(values: list[float]) -> list[Fraction]:
    weights = [Fraction(repr(value)) for value in values]
    return [weight / sum(weights) for weight in weights]


@given(shares, st.integers(0, 10**7), st.integers(0, 2**32))
def test_counts_are_quotas_rounded_down_or_up(values: list[float], n: int, seed: int) -> None:
    ties = np.random.default_rng(seed).random(len(values))
    counts = largest_remainder(values, n, ties).tolist()
    assert sum(counts) == n
    for count, share in zip(counts, exact(values), strict=True):
        assert abs(count - n * share) < 1


@given(shares, st.integers(0, 1000))
def test_the_largest_remainders_are_rounded_up(values: list[float], n: int) -> None:
    counts = largest_remainder(values, n, np.zeros(len(values))).tolist()
    quotas = [n * share for share in exact(values)]
    up = [q - int(q) for q, c in zip(quotas, counts, strict=True) if c > int(q)]
    down = [q - int(q) for q, c in zip(quotas, counts, strict=True) if c == int(q)]
    assert not up or not down or min(up) >= max(down)


@pytest.mark.parametrize(
    ("values", "n", "counts"),
    [
        ([0.1, 0.4, 0.3, 0.15, 0.05], 40, [4, 16, 12, 6, 2]),
        ([0.1, 0.2, 0.7], 10, [1, 2, 7]),
        ([0.333333, 0.333333, 0.333334], 3, [1, 1, 1]),
        ([0.0, 1.0, 0.0], 7, [0, 7, 0]),
        ([0.6, 0.4], 1, [1, 0]),
        ([1e-300, 1.0], 5, [0, 5]),
    ],
)
def test_known_counts(values: list[float], n: int, counts: list[int]) -> None:
    assert largest_remainder(values, n, np.zeros(len(values))).tolist() == counts


def test_equal_remainders_go_to_the_smaller_tie_number() -> None:
    # 0.1 + 0.2 is above 0.3 in binary; as written, these three remainders are equal.
    assert largest_remainder([0.3, 0.3, 0.4], 5, np.array([0.9, 0.1, 0.5])).tolist() == [1, 2, 2]
    assert largest_remainder([0.3, 0.3, 0.4], 5, np.array([0.1, 0.9, 0.5])).tolist() == [2, 1, 2]


@given(st.integers(1, 2000), unit, unit, unit)
def test_an_interval_holds_its_share_of_the_ladder(
    n: int, offset: float, one: float, other: float
) -> None:
    low, high = sorted((one, other))
    points = ladder(n, offset)
    held = np.count_nonzero((points >= low) & (points < high))
    assert abs(held - n * (high - low)) < 1 + 1e-9
    assert points[0] >= 0
    assert points[-1] < 1


def test_the_ladder_is_fair_over_offsets() -> None:
    offsets = (np.arange(1000) + 0.5) / 1000
    held = [np.count_nonzero(ladder(3, float(offset)) < 0.1) for offset in offsets]
    assert np.mean(held) == pytest.approx(0.3, abs=1e-3)
    assert set(held) == {0, 1}


@given(st.integers(1, 500), unit, st.integers(0, 2**32))
def test_each_stratum_holds_one_point(n: int, offset: float, seed: int) -> None:
    inside = np.random.default_rng(seed).random(n)
    points = strata(np.ones(1), n, offset, inside)
    assert (np.floor(points * n + 1e-9) >= np.arange(n)).all()
    assert (points * n <= np.arange(1, n + 1) + 1e-9).all()


@given(shares, st.integers(1, 500), unit, st.integers(0, 2**32))
def test_bins_of_strata_hold_their_quota(
    values: list[float], n: int, offset: float, seed: int
) -> None:
    cumulative = np.cumsum(values)
    masses = cumulative / cumulative[-1]
    points = strata(masses, n, offset, np.random.default_rng(seed).random(n))
    counts = np.bincount(np.searchsorted(masses, points, side="right"), minlength=len(masses))
    assert np.abs(counts - n * np.diff(masses, prepend=0.0)).max() < 1 + 1e-9
