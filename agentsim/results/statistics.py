"""Statistics of one round and over sessions: functions of arrays, no files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95


def exact_mean(values: NDArray[np.float64]) -> float | None:
    """The exact sum, rounded once, divided by the count: it does not depend on the order.

    Args:
        values: `(n,)` finite.

    Returns:
        None without values.
    """
    return math.fsum(values.tolist()) / values.size if values.size else None


def moments(values: NDArray[np.float64]) -> dict[str, float | None]:
    """Mean, spread and quartiles of valid values.

    Quartiles interpolate linearly between neighbours.

    Args:
        values: `(n,)` finite.

    Returns:
        mean, sd (ddof 1; None below two values), min, q1, median, q3, max; None without values.
    """
    names = ("min", "q1", "median", "q3", "max")
    if not values.size:
        return dict.fromkeys(("mean", "sd", *names))
    mean = exact_mean(values)
    sd = float(np.std(values, ddof=1)) if values.size > 1 else None
    quantiles = np.quantile(values, (0, 0.25, 0.5, 0.75, 1)).tolist()
    return {"mean": mean, "sd": sd, **dict(zip(names, quantiles, strict=True))}


def bounds(
    mean: float | None, valid: int, n: int, rule: Mapping[str, Any] | None
) -> dict[str, float | None] | None:
    """Between which numbers mean and target would lie, had the missing players answered anything.

    Args:
        mean: over the valid values; None when there are none.
        valid: how many values are valid.
        n: players.
        rule: `{low, high, slope, intercept}`; the last two None when the target is no straight
            line in the mean. None: the range is unknown, and so are the bounds.

    Returns:
        mean_low, mean_high, target_low, target_high (None where it has no such form), or None.
    """
    if rule is None or not n:
        return None
    low, high = float(rule["low"]), float(rule["high"])
    if mean is not None:
        # Written so that nothing is lost to rounding when nobody is missing.
        share = (n - valid) / n
        low, high = mean + share * (low - mean), mean + share * (high - mean)
    targets: list[float] | list[None] = [None, None]
    slope, intercept = rule.get("slope"), rule.get("intercept")
    if slope is not None and intercept is not None:
        targets = sorted(slope * end + intercept for end in (low, high))
    return {"mean_low": low, "mean_high": high, "target_low": targets[0], "target_high": targets[1]}


def over_sessions(means: Sequence[float]) -> dict[str, float | int | None]:
    """The mean of session means with Student's t interval. Sessions are the independent units.

    Args:
        means: one for each session that has one.

    Returns:
        sessions, mean_of_means, sd_between_sessions, low, high; the last three None for fewer
        than two sessions, the mean too for none.
    """
    count = len(means)
    result: dict[str, float | int | None] = {
        "sessions": count,
        "mean_of_means": math.fsum(means) / count if count else None,
        "sd_between_sessions": None,
        "low": None,
        "high": None,
    }
    if count > 1:
        from scipy.special import stdtrit

        sd = float(np.std(np.asarray(means), ddof=1))
        middle = math.fsum(means) / count
        half = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * sd / math.sqrt(count)
        result |= {"sd_between_sessions": sd, "low": middle - half, "high": middle + half}
    return result
