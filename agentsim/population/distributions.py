"""Values from probabilities, for each distribution a population file can name.

Whole numbers: `uniform` gives each one in [low, high] the same probability; `normal` gives each
whole number k in [low, high] the mass of the normal between k - ½ and k + ½, relative to the sum
of these masses; a bin of a `histogram` divides its share evenly among the whole numbers it holds.
Bounds that are not whole are moved inwards: 17.5 as `low` means 18.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from agentsim.config.population import (
    Distribution,
    Histogram,
    HistogramOf,
    ModelWriter,
    Normal,
    NormalOf,
    Population,
    Uniform,
)
from agentsim.errors import UserError

RESERVED = frozenset({"session", "agent", "background"})
"""Columns of the personas' file that no attribute may be named like, in upper or lower case."""
WRITTEN = frozenset({"writer", "attempts", "profile", "checks"})
"""Columns that are added where a model writes; then they are reserved too."""


def attribute_names(columns: Sequence[str]) -> list[str]:
    """The attributes among the columns of a personas' file."""
    others = RESERVED | (WRITTEN if set(columns) >= WRITTEN else set())
    return [name for name in columns if name not in others]


def check(population: Population) -> None:
    """Refuses attributes that the personas' file cannot hold. All else the file's models check.

    Raises:
        UserError: an attribute has a reserved name.
    """
    reserved = RESERVED | (WRITTEN if isinstance(population.persona, ModelWriter) else set())
    for name in population.attributes:
        if name.lower() in reserved:
            raise UserError(
                f"attribute `{name}`: the name is reserved; "
                f"{', '.join(sorted(reserved))} are columns of the personas' file"
            )


def edges_of(distribution: Distribution) -> list[float]:
    """Edges of the bins, ascending; the two bounds of what has no bins."""
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
        distribution: as its file's model has checked it.
        points: probabilities in [0, 1).

    Returns:
        float64 of the shape of `points`, within the bounds, in the attribute's unit.
    """
    edges = np.array(edges_of(distribution))
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
        distribution: as its file's model has checked it.
        points: probabilities in [0, 1).

    Returns:
        int64 of the shape of `points`, within the bounds.
    """
    first, last = _whole(edges_of(distribution))
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
        low, high: bounds, both possible; 1e-300 of the normal or more lies between them, which
            holds up to 37 standard deviations from the mean.

    Returns:
        float64 of the shape of `points`, in [low, high].
    """
    a, b = (low - mean) / sd, (high - mean) / sd
    sign = 1.0
    if a + b > 0:  # floats are dense near 0 and not near 1: work in the lower tail
        a, b, sign, points = -b, -a, -1.0, 1.0 - points
    below, above = special.ndtr(a), special.ndtr(b)
    standard = special.ndtri(below + points * (above - below))
    return np.asarray(np.clip(mean + sign * sd * standard, low, high))
