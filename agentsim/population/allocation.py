"""How many people get each value, and where in a distribution each person stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_BELOW_ONE = 1.0 - 2.0**-53


@lru_cache(maxsize=256)
def _weights(shares: tuple[float, ...]) -> tuple[int, ...]:
    """Whole numbers in the exact proportions of the shares, each taken as it is written."""
    exact = [Fraction(repr(share)) for share in shares]
    denominator = math.lcm(*(share.denominator for share in exact))
    return tuple(int(share * denominator) for share in exact)


def largest_remainder(
    shares: Sequence[float], n: int, ties: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Divides n people among categories by largest remainder, in exact arithmetic.

    Every count is `n * share` rounded down or up. Shares need not sum to 1; they are relative.
    Equal remainders are decided by `ties` and not by place in the list: a rule that favours the
    first category would favour it in every one of many small sessions.

    Args:
        shares: `(k,)` at least one above 0.
        n: how many people.
        ties: `(k,)` random numbers; of equal remainders the one with the smaller number wins.

    Returns:
        `(k,)` int64, sums to n.
    """
    weights = _weights(tuple(float(share) for share in shares))
    total = sum(weights)
    quotas = [divmod(n * weight, total) for weight in weights]
    counts = [whole for whole, _ in quotas]
    ranked = sorted(range(len(counts)), key=lambda i: (-quotas[i][1], ties[i]))
    for i in ranked[: n - sum(counts)]:
        counts[i] += 1
    return np.array(counts, dtype=np.int64)


def ladder(n: int, offset: float) -> NDArray[np.float64]:
    """Evenly spaced points in [0, 1): `(i + offset) / n`.

    Any interval of [0, 1) of width p holds `n * p` of them, rounded down or up, and over random
    offsets in [0, 1) it holds `n * p` on average. This is what numbers use in place of largest
    remainders. Those would give ten people the ten likeliest ages and never a rare one, in every
    session; cumulative rounding keeps the shape of the distribution for any n.

    Returns:
        `(n,)` float64, ascending.
    """
    points = (np.arange(n, dtype=np.float64) + offset) / n
    return np.minimum(points, _BELOW_ONE)


def strata(
    masses: NDArray[np.float64], n: int, offset: float, inside: NDArray[np.float64]
) -> NDArray[np.float64]:
    """One random point in each of n strata of equal probability, exact for every bin.

    Args:
        masses: `(k,)` cumulative probabilities of the bins, the last one is 1.
        n: how many points.
        offset: in [0, 1), decides how bins are rounded (see `ladder`).
        inside: `(n,)` in [0, 1), where in its stratum each point lies.

    Returns:
        `(n,)` float64 in [0, 1), ascending.
    """
    bins = np.searchsorted(masses, ladder(n, offset), side="right")
    counts = np.bincount(bins, minlength=len(masses))
    rank = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    low = np.concatenate([[0.0], masses[:-1]])
    position = low[bins] + (masses - low)[bins] * ((rank + inside) / counts[bins])
    return np.asarray(np.minimum(position, _BELOW_ONE))
