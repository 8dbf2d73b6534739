from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from agentsim.results.statistics import bounds, exact_mean, moments, over_sessions

RULE = {"low": 0.0, "high": 100.0, "slope": 2 / 3, "intercept": 5.0}
values = arrays(np.float64, st.integers(2, 60), elements=st.floats(0, 1e6, width=32))


def test_by_hand() -> None:
    described = moments(np.array([1.0, 2.0, 4.0, 9.0]))
    assert described == {
        "mean": 4.0,
        "sd": pytest.approx(math.sqrt((9 + 4 + 0 + 25) / 3)),
        "min": 1.0,
        "q1": 1.75,
        "median": 3.0,
        "q3": 5.25,
        "max": 9.0,
    }


def test_one_value_has_no_spread_and_none_has_nothing() -> None:
    assert moments(np.array([3.0])) == {
        "mean": 3.0,
        "sd": None,
        "min": 3.0,
        "q1": 3.0,
        "median": 3.0,
        "q3": 3.0,
        "max": 3.0,
    }
    assert set(moments(np.array([])).values()) == {None}


@given(values)
def test_against_numpy(numbers: np.ndarray) -> None:
    described = moments(numbers)
    assert described["mean"] == pytest.approx(float(numbers.mean()), abs=1e-9)
    assert described["sd"] == pytest.approx(float(numbers.std(ddof=1)), abs=1e-9)
    expected = np.percentile(numbers, [0, 25, 50, 75, 100])
    got = [described[name] for name in ("min", "q1", "median", "q3", "max")]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@given(values, st.randoms())
def test_the_mean_does_not_depend_on_the_order(numbers: np.ndarray, random: object) -> None:
    shuffled = numbers.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert exact_mean(shuffled) == exact_mean(numbers)


def test_bounds_by_hand() -> None:
    # Three of four answered, 90 in sum; the fourth could have said anything from 0 to 100.
    assert bounds(30.0, 3, 4, RULE) == {
        "mean_low": 22.5,
        "mean_high": 47.5,
        "target_low": pytest.approx(20.0),
        "target_high": pytest.approx(36 + 2 / 3),
    }


def test_bounds_close_when_nobody_is_missing_and_open_when_everybody_is() -> None:
    closed = bounds(0.1 + 0.2, 7, 7, RULE)
    assert closed is not None
    assert closed["mean_low"] == closed["mean_high"] == 0.1 + 0.2
    opened = bounds(None, 0, 7, RULE)
    assert opened is not None
    assert (opened["mean_low"], opened["mean_high"]) == (0.0, 100.0)


def test_a_falling_target_has_its_bounds_in_order() -> None:
    falling = bounds(30.0, 3, 4, RULE | {"slope": -1.0, "intercept": 100.0})
    assert falling is not None
    assert (falling["target_low"], falling["target_high"]) == (52.5, 77.5)


def test_a_target_of_another_form_has_no_bounds() -> None:
    other = bounds(30.0, 3, 4, RULE | {"slope": None, "intercept": None})
    assert other == {"mean_low": 22.5, "mean_high": 47.5, "target_low": None, "target_high": None}
    assert bounds(30.0, 3, 4, None) is None


@given(
    st.lists(st.floats(0, 100, width=32), min_size=1, max_size=30),
    st.lists(st.floats(0, 100, width=32), max_size=30),
)
def test_whatever_the_missing_had_answered_lies_between_the_bounds(
    heard: list[float], missing: list[float]
) -> None:
    mean = math.fsum(heard) / len(heard)
    n = len(heard) + len(missing)
    between = bounds(mean, len(heard), n, RULE)
    assert between is not None
    truth = math.fsum([*heard, *missing]) / n
    low, high = between["mean_low"], between["mean_high"]
    assert low is not None
    assert high is not None
    assert low - 1e-9 <= truth <= high + 1e-9


def test_one_session_has_no_interval() -> None:
    assert over_sessions([30.0]) == {
        "sessions": 1,
        "mean_of_means": 30.0,
        "sd_between_sessions": None,
        "low": None,
        "high": None,
    }
    assert over_sessions([])["mean_of_means"] is None


def test_the_interval_is_students() -> None:
    means = [30.0, 34.0, 29.0, 33.0]
    got = over_sessions(means)
    low, high = stats.t.interval(0.95, 3, loc=np.mean(means), scale=stats.sem(means))
    assert got["mean_of_means"] == 31.5
    assert got["sd_between_sessions"] == pytest.approx(np.std(means, ddof=1))
    assert (got["low"], got["high"]) == (pytest.approx(low), pytest.approx(high))
