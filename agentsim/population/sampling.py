"""Draws the attributes of one session's people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from agentsim import draws
from agentsim.config.population import Attribute, Categories, Distribution, Integer, Population
from agentsim.draws import Stream
from agentsim.population import allocation, distributions

# What one attribute's draws are for, as the `attempt` of a draw. Numbers are part of what a seed
# means: append, never renumber.
_PERMUTE = 0
_INSIDE = 1
_OFFSET = 2
_TIES = 3


@dataclass(frozen=True, slots=True)
class _Source:
    """Random numbers for one attribute of one session."""

    n: int
    seed: int
    session: int
    step: int

    def uniforms(self, attempt: int, count: int) -> NDArray[np.float64]:
        return draws.uniforms(
            Stream.POPULATION,
            np.arange(count, dtype=np.uint64),
            seed=self.seed,
            session=self.session,
            step=self.step,
            attempt=attempt,
        )

    def permutation(self) -> NDArray[np.int64]:
        words = draws.integers(
            Stream.POPULATION,
            np.arange(self.n, dtype=np.uint64),
            seed=self.seed,
            session=self.session,
            step=self.step,
            attempt=_PERMUTE,
        )
        return np.argsort(words, kind="stable")


def sample(population: Population, n: int, *, seed: int, session: int) -> pa.Table:
    """Draws n people. A pure function of its arguments.

    With allocation `quota`, each category has `n * share` people, rounded down or up by largest
    remainder (ties are decided by a draw of the session), and each whole number and each bin of
    a histogram has its `n * probability`, rounded down or up along the cumulative distribution.
    Real numbers have one draw in each of n strata of equal probability. A permutation of its own
    then deals each attribute to the agents, so that attributes are independent. With `random`
    every agent draws for itself, and the first agents are the same for any n.

    Args:
        population: the population file.
        n: agents of the session.
        seed: the scenario's seed.
        session: from 1.

    Returns:
        n rows in agent order; one column an attribute, in file order: dictionary<int32, string>
        for categories (all of them, in file order), int64 for integers, float64 for reals.

    Raises:
        UserError: an attribute has a reserved name.
    """
    if n < 0:
        raise ValueError(f"cannot draw {n} people")
    distributions.check(population)
    quota = population.allocation == "quota"
    columns: dict[str, pa.Array[Any]] = {}
    for step, (name, attribute) in enumerate(population.attributes.items()):
        columns[name] = _column(attribute, _Source(n, seed, session, step), quota)
    return pa.table(columns)


def _column(attribute: Attribute, source: _Source, quota: bool) -> pa.Array[Any]:
    if isinstance(attribute, Categories):
        codes = _codes(list(attribute.categories.values()), source, quota)
        names = pa.array(list(attribute.categories), type=pa.string())
        return pa.DictionaryArray.from_arrays(codes, names)
    if isinstance(attribute, Integer):
        distribution = attribute.integer
        if quota:
            offset = float(source.uniforms(_OFFSET, 1)[0])
            points = allocation.ladder(source.n, offset) if source.n else np.empty(0)
        else:
            points = source.uniforms(_INSIDE, source.n)
        whole = distributions.integers(distribution, points)
        return pa.array(whole[source.permutation()] if quota else whole)
    values = distributions.reals(attribute.real, _real_points(attribute.real, source, quota))
    return pa.array(values[source.permutation()] if quota else values)


def _codes(shares: list[float], source: _Source, quota: bool) -> NDArray[np.int32]:
    """The index of each person's category."""
    if quota:
        counts = allocation.largest_remainder(shares, source.n, source.uniforms(_TIES, len(shares)))
        codes = np.repeat(np.arange(len(shares), dtype=np.int32), counts)
        return codes[source.permutation()]
    cumulative = np.cumsum(shares, dtype=np.float64)
    points = source.uniforms(_INSIDE, source.n)
    return np.searchsorted(cumulative / cumulative[-1], points, side="right").astype(np.int32)


def _real_points(distribution: Distribution, source: _Source, quota: bool) -> NDArray[np.float64]:
    inside = source.uniforms(_INSIDE, source.n)
    if not (quota and source.n):
        return inside
    offset = float(source.uniforms(_OFFSET, 1)[0])
    return allocation.strata(distributions.masses(distribution), source.n, offset, inside)
