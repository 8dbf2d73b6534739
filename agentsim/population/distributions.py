"""Values from probabilities, for each distribution a population file can name.

Whole numbers: `uniform` gives each one in [low, high] the same probability; `normal` gives each
whole number k in [low, high] the mass of the normal between k - ½ and k + ½, relative to the sum
of these masses; a bin of a `histogram` divides its share evenly among the whole numbers it holds.
Bounds that are not whole are moved inwards: 17.5 as `low` means 18.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import special

from agentsim.config.population import (
    Categories,
    Distribution,
    Histogram,
    HistogramOf,
    Integer,
    Normal,
    NormalOf,
    Population,
    Uniform,
)
from agentsim.errors import UserError

RESERVED = frozenset({"session", "agent", "background"})
"""Columns of the personas' file that no attribute may be named like, in upper or lower case."""

_LARGEST_WHOLE = 2**53
_FAR = 1e6  # in standard deviations; farther out a truncated normal is its nearer bound
_LOG_SPACE_BELOW = -35.0  # in standard deviations; the normal's mass underflows from -38 on


def check(population: Population) -> None:
    """Refuses a population that cannot be drawn.

    Raises:
        UserError: an attribute has a reserved name, shares that do not add up to anything, bounds
            that are not finite or in the wrong order, or a part that holds no whole number.
    """
    for name, attribute in population.attributes.items():
        if name.lower() in RESERVED:
            raise UserError(
                f"attribute `{name}`: the name is reserved; "
                f"{', '.join(sorted(RESERVED))} are columns of the personas' file"
            )
        try:
            if isinstance(attribute, Categories):
                _check_shares(list(attribute.categories.values()))
            elif isinstance(attribute, Integer):
                _check_distribution(attribute.integer, whole=True)
            else:
                _check_distribution(attribute.real, whole=False)
        except ValueError as error:
            raise UserError(f"attribute `{name}`: {error}") from error


def _check_shares(shares: list[float]) -> None:
    if not all(math.isfinite(share) and share >= 0 for share in shares):
        raise ValueError("shares must be finite and at least 0")
    if not sum(shares) > 0:
        raise ValueError("at least one share must be above 0")


def _check_distribution(distribution: Distribution, *, whole: bool) -> None:
    edges = _edges(distribution)
    if not all(map(math.isfinite, edges)):
        raise ValueError("bounds must be finite")
    if isinstance(distribution, HistogramOf):
        shares = distribution.histogram.shares
        _check_shares(shares)
        if len(edges) != len(shares) + 1:
            raise ValueError(f"{len(shares)} shares need {len(shares) + 1} edges, not {len(edges)}")
        if any(low >= high for low, high in pairwise(edges)):
            raise ValueError("edges must ascend")
    elif edges[0] > edges[1]:
        raise ValueError(f"low ({edges[0]:g}) is above high ({edges[1]:g})")
    if isinstance(distribution, NormalOf):
        normal = distribution.normal
        if not (math.isfinite(normal.mean) and math.isfinite(normal.sd) and normal.sd > 0):
            raise ValueError("mean and sd must be finite, and sd above 0")
        a, b = ((edge - normal.mean) / normal.sd for edge in edges)
        if not (a < _FAR and b > -_FAR):
            raise ValueError(f"the bounds lie more than {_FAR:g} sd from the mean")
    if whole:
        _check_whole(distribution, edges)


def _check_whole(distribution: Distribution, edges: list[float]) -> None:
    if max(abs(edges[0]), abs(edges[-1])) > _LARGEST_WHOLE:
        raise ValueError("whole numbers beyond ±2**53 cannot be told apart")
    first, last = _whole(edges)
    shares = distribution.histogram.shares if isinstance(distribution, HistogramOf) else [1.0]
    for i, share in enumerate(shares):
        if share > 0 and first[i] > last[i]:
            raise ValueError(f"no whole number lies between {edges[i]:g} and {edges[i + 1]:g}")


def _edges(distribution: Distribution) -> list[float]:
    part: Uniform | Normal | Histogram
    if isinstance(distribution, HistogramOf):
        return list(distribution.histogram.edges)
    part = distribution.normal if isinstance(distribution, NormalOf) else distribution.uniform
    return [part.low, part.high]


def _whole(edges: list[float]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last whole number of each bin; the last bin alone holds its upper edge."""
    first = np.array([math.ceil(edge) for edge in edges[:-1]], dtype=np.int64)
    last = np.array([math.ceil(edge) - 1 for edge in edges[1:]], dtype=np.int64)
    last[-1] = math.floor(edges[-1])
    return first, last


def masses(distribution: Distribution) -> NDArray[np.float64]:
    """Cumulative probability at the upper edge of each bin; `[1.0]` for what has no bins.

    Returns:
        `(k,)` float64, ascending, the last one is exactly 1.
    """
    if not isinstance(distribution, HistogramOf):
        return np.ones(1)
    cumulative = np.cumsum(distribution.histogram.shares, dtype=np.float64)
    return np.asarray(cumulative / cumulative[-1])


def reals(distribution: Distribution, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles of a distribution of real numbers.

    Args:
        distribution: has passed `check`.
        points: probabilities in [0, 1).

    Returns:
        float64 of the shape of `points`, within the bounds, in the attribute's unit.
    """
    edges = np.array(_edges(distribution))
    if isinstance(distribution, NormalOf):
        normal = distribution.normal
        return truncated_normal(points, normal.mean, normal.sd, normal.low, normal.high)
    bins, fraction = _locate(distribution, points)
    low, high = edges[bins], edges[bins + 1]
    values = low * (1.0 - fraction) + high * fraction
    # Rounding may reach the upper edge, which belongs to the next bin.
    top = np.append(np.nextafter(edges[1:-1], -np.inf), edges[-1])[bins]
    return np.clip(values, low, top)


def integers(distribution: Distribution, points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Quantiles of a distribution of whole numbers; see the module for what their masses are.

    Args:
        distribution: has passed `check`.
        points: probabilities in [0, 1).

    Returns:
        int64 of the shape of `points`, within the bounds.
    """
    first, last = _whole(_edges(distribution))
    if isinstance(distribution, NormalOf):
        normal = distribution.normal
        low, high = float(first[0]), float(last[0])
        values = truncated_normal(points, normal.mean, normal.sd, low - 0.5, high + 0.5)
        return np.clip(np.rint(values), low, high).astype(np.int64)
    bins, fraction = _locate(distribution, points)
    held = (last - first + 1)[bins]
    steps = np.minimum((fraction * held).astype(np.int64), held - 1)
    return np.asarray(first[bins] + steps)


def _locate(
    distribution: Distribution, points: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The bin of each point, and where in the bin it lies, in [0, 1)."""
    upper = masses(distribution)
    if len(upper) == 1:
        return np.zeros(len(points), dtype=np.int64), points
    lower = np.concatenate([[0.0], upper[:-1]])
    bins = np.searchsorted(upper, points, side="right")
    return bins, (points - lower[bins]) / (upper - lower)[bins]


def truncated_normal(
    points: NDArray[np.float64], mean: float, sd: float, low: float, high: float
) -> NDArray[np.float64]:
    """Quantiles of a normal distribution truncated to [low, high], also far out in its tails.

    Args:
        points: probabilities in [0, 1).
        mean, sd: of the normal before truncation.
        low, high: bounds, both possible.

    Returns:
        float64 of the shape of `points`, in [low, high].
    """
    a, b = (low - mean) / sd, (high - mean) / sd
    if a + b > 0:  # floats are dense near 0 and not near 1: work in the lower tail
        return np.clip(mean - sd * _lower(1.0 - points, -b, -a), low, high)
    return np.clip(mean + sd * _lower(points, a, b), low, high)


def _lower(points: NDArray[np.float64], a: float, b: float) -> NDArray[np.float64]:
    """Standard normal quantiles between a and b, where most of the mass is not near 1."""
    if b > _LOG_SPACE_BELOW:
        below, above = special.ndtr(a), special.ndtr(b)
        return np.asarray(special.ndtri(below + points * (above - below)), dtype=np.float64)
    with np.errstate(divide="ignore"):
        log_mass = np.logaddexp(
            special.log_ndtr(a) + np.log1p(-points), special.log_ndtr(b) + np.log(points)
        )
    return np.asarray(special.ndtri_exp(log_mass), dtype=np.float64)
