"""Quantiles agree with what the distributions are, also far out in the tails."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special, stats

from agentsim.config.population import Real
from agentsim.population.distributions import integers, masses, reals, truncated_normal

GRID = (np.arange(20_000) + 0.5) / 20_000


def distribution(**kind: Any) -> Any:
    return Real.model_validate_json(json.dumps({"real": kind})).real


@pytest.mark.parametrize(
    ("mean", "sd", "low", "high"),
    [
        (41, 15, 18, 90),
        (0, 1, -0.1, 0.1),
        (0, 1, -30, 30),
        (100, 15, 130, 145),
        (100, 15, 55, 70),
        (-5, 2, 0, 100),
        (0, 100, -1, 3),
    ],
)
def test_truncated_normal_has_the_moments_of_scipys(
    mean: float, sd: float, low: float, high: float
) -> None:
    reference = stats.truncnorm((low - mean) / sd, (high - mean) / sd, loc=mean, scale=sd)
    values = truncated_normal(GRID, mean, sd, low, high)
    assert (np.diff(values) >= 0).all()
    assert values.min() >= low
    assert values.max() <= high
    scale = reference.std()
    assert values.mean() == pytest.approx(reference.mean(), abs=1e-4 * scale)
    assert values.std() == pytest.approx(scale, rel=2e-3)
    assert stats.kstest(values, reference.cdf).statistic < 1e-4


@pytest.mark.parametrize("low", [3.0, 8.0, 20.0, 36.9])
@pytest.mark.parametrize("side", [1, -1])
def test_quantiles_in_the_tail_invert_the_tail(low: float, side: int) -> None:
    high = low + 1.0
    bounds = (low, high) if side == 1 else (-high, -low)
    values = side * truncated_normal(GRID, 0.0, 1.0, *bounds)
    if side == -1:
        values = values[::-1]
    assert low <= values.min() < values.max() <= high
    # P(X > x) / P(X > low), from logarithms of the upper tail: no underflow, no cancellation.
    beyond = np.exp(special.log_ndtr(-values) - special.log_ndtr(-low))
    last = np.exp(special.log_ndtr(-high) - special.log_ndtr(-low))
    assert (1 - beyond) / (1 - last) == pytest.approx(GRID, abs=1e-9)


def test_the_mean_of_a_tail_is_that_of_its_integral() -> None:
    weight = integrate.quad(lambda x: np.exp(32 - x * x / 2), 8, 9)[0]
    mean = integrate.quad(lambda x: x * np.exp(32 - x * x / 2), 8, 9)[0] / weight
    assert truncated_normal(GRID, 0, 1, 8, 9).mean() == pytest.approx(mean, abs=1e-5)


def test_the_ends_of_the_unit_interval_stay_in_bounds() -> None:
    ends = np.array([0.0, 2.0**-60, 1 - 2.0**-53])
    for bounds in ((18, 90), (-40, -37), (37, 40), (5, 5), (-40, 40)):
        values = truncated_normal(ends, 0, 1, *bounds)
        assert ((values >= bounds[0]) & (values <= bounds[1])).all()


def test_whole_normals_have_the_mass_around_each_number() -> None:
    normal = distribution(normal={"mean": 20, "sd": 6, "low": 17.5, "high": 30.2})
    values, counts = np.unique(integers(normal, GRID), return_counts=True)
    assert values.tolist() == list(range(18, 31))
    mass = np.diff(stats.norm(20, 6).cdf(np.arange(17.5, 31)))
    assert counts / len(GRID) == pytest.approx(mass / mass.sum(), abs=1 / len(GRID))


def test_whole_uniforms_are_equally_likely_and_hold_both_ends() -> None:
    die = distribution(uniform={"low": 0.5, "high": 6.9})
    values, counts = np.unique(integers(die, GRID), return_counts=True)
    assert values.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.ptp(counts) <= 1


def test_wide_whole_uniforms_need_no_table() -> None:
    wide = distribution(uniform={"low": -(2**50), "high": 2**50})
    values = integers(wide, GRID)
    assert len(np.unique(values)) == len(GRID)
    assert values.min() < -0.999 * 2**50
    assert values.max() > 0.999 * 2**50


def test_a_bin_shares_evenly_among_its_whole_numbers() -> None:
    bins = distribution(histogram={"edges": [18, 20.5, 25, 27], "shares": [0.3, 0.5, 0.2]})
    values, counts = np.unique(integers(bins, GRID), return_counts=True)
    assert values.tolist() == [18, 19, 20, 21, 22, 23, 24, 25, 26, 27]
    shares = [0.1] * 3 + [0.125] * 4 + [0.2 / 3] * 3
    assert counts / len(GRID) == pytest.approx(shares, abs=1 / len(GRID))


def test_real_bins_hold_their_lower_edge_and_not_their_upper_one() -> None:
    edges = [0.0, 0.1, 0.3, 1.0]
    bins = distribution(histogram={"edges": edges, "shares": [0.25, 0.5, 0.25]})
    assert masses(bins).tolist() == [0.25, 0.75, 1.0]
    starts = reals(bins, np.array([0.0, 0.25, 0.75]))
    assert starts.tolist() == [0.0, 0.1, 0.3]
    nearly = np.nextafter([0.25, 0.75], 0)
    assert (reals(bins, nearly) < [0.1, 0.3]).all()
    values = reals(bins, GRID)
    assert np.histogram(values, edges)[0].tolist() == [5000, 10000, 5000]
    inside = values[(values >= 0.1) & (values < 0.3)]
    assert stats.kstest(inside, stats.uniform(0.1, 0.2).cdf).statistic < 1e-3


def test_bins_without_a_share_stay_empty() -> None:
    bins = distribution(histogram={"edges": [0, 1, 2, 3, 4], "shares": [0, 1, 0, 0]})
    for points in (GRID, np.array([0.0]), np.array([1 - 2.0**-53])):
        values = reals(bins, points)
        assert ((values >= 1) & (values < 2)).all()


def test_real_uniforms_fill_their_range() -> None:
    values = reals(distribution(uniform={"low": -3, "high": 5}), GRID)
    assert values.mean() == pytest.approx(1, abs=1e-9)
    assert stats.kstest(values, stats.uniform(-3, 8).cdf).statistic < 1e-4
