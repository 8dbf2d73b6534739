"""The arithmetic of comparisons: slopes, spreads, ratios."""

from __future__ import annotations

import pytest

from benchmarks.slopes import Spread, ratio, slope, slopes, steps


def test_start_up_falls_out_of_a_slope() -> None:
    assert slope([(1_000, 4.0 + 3.0), (5_000, 4.0 + 15.0)]) == pytest.approx(3e-3)


def test_a_slope_of_many_sizes_is_that_of_least_squares() -> None:
    assert slope([(0, 0.0), (1, 1.0), (2, 0.0), (3, 1.0)]) == pytest.approx(0.2)


def test_runs_of_one_size_have_no_slope() -> None:
    with pytest.raises(ValueError, match="two sizes"):
        slope([(10, 1.0), (10, 2.0)])


def test_a_repeat_that_lacks_a_size_is_left_out() -> None:
    assert slopes({1: {10: 1.0, 20: 2.0}, 2: {10: 1.0}}) == {1: pytest.approx(0.1)}


def test_ratios_are_taken_repeat_by_repeat() -> None:
    # The second repeat ran on a machine that was half as fast: for both.
    found = ratio({1: 3.0, 2: 6.0, 3: 4.0}, {1: 1.0, 2: 2.0, 4: 1.0})
    assert found == Spread(3.0, 3.0, 3.0)


def test_ratio_refuses_noise() -> None:
    with pytest.raises(ValueError, match="not positive"):
        ratio({1: 3.0}, {1: -0.1})
    with pytest.raises(ValueError, match="at least one"):
        ratio({1: 3.0}, {2: 1.0})


def test_spread_has_median_least_and_most() -> None:
    assert Spread.of([3.0, 1.0, 10.0]) == Spread(3.0, 1.0, 10.0)


def test_steps_tell_whether_cost_is_linear() -> None:
    found = steps({1: {10: 1.0, 20: 2.0, 40: 6.0}, 2: {10: 1.0, 20: 4.0, 40: 8.0}})
    assert found[10, 20] == Spread.of([0.1, 0.3])
    assert found[20, 40] == Spread(0.2, 0.2, 0.2)
