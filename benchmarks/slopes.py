"""What one more agent costs: slopes over sizes, their spread over repeats, and ratios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure that was measured several times."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """
        Raises:
            ValueError: there are no values.
        """
        found = sorted(values)
        if not found:
            raise ValueError("a spread needs at least one value")
        return cls(median(found), found[0], found[-1])


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the least-squares line; of two points, the line through them.

    Args:
        points: (agents, cost) of single runs.

    Raises:
        ValueError: the points do not have two sizes at least.
    """
    if len({agents for agents, _ in points}) < 2:
        raise ValueError("a slope needs runs of two sizes at least")
    middle = fmean(agents for agents, _ in points)
    level = fmean(cost for _, cost in points)
    above = sum((agents - middle) * (cost - level) for agents, cost in points)
    return above / sum((agents - middle) ** 2 for agents, _ in points)


def slopes(costs: Mapping[int, Mapping[int, float]]) -> dict[int, float]:
    """The slope of each repeat that ran two sizes at least.

    Args:
        costs: by repeat and number of agents.
    """
    return {repeat: slope(list(by.items())) for repeat, by in costs.items() if len(by) > 1}


def ratio(theirs: Mapping[int, float], ours: Mapping[int, float]) -> Spread:
    """How many times theirs is ours, repeat by repeat: what disturbs a repeat disturbs both.

    Args:
        theirs, ours: slopes by repeat.

    Raises:
        ValueError: no repeat has both, or ours is not positive.
    """
    both = theirs.keys() & ours.keys()
    if any(ours[repeat] <= 0 for repeat in both):
        raise ValueError("a slope that is not positive: the sizes are too small for this machine")
    return Spread.of(theirs[repeat] / ours[repeat] for repeat in both)


def steps(costs: Mapping[int, Mapping[int, float]]) -> dict[tuple[int, int], Spread]:
    """The slope between each size and the next: equal where cost is linear.

    Args:
        costs: by repeat and number of agents.
    """
    found: dict[tuple[int, int], list[float]] = {}
    for by in costs.values():
        sizes = sorted(by)
        for few, many in pairwise(sizes):
            found.setdefault((few, many), []).append((by[many] - by[few]) / (many - few))
    return {step: Spread.of(values) for step, values in found.items()}
