"""What a population file asks for, and what was drawn, in the same words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from agentsim.config.population import (
    Attribute,
    Categories,
    Distribution,
    HistogramOf,
    Integer,
    NormalOf,
    Population,
)
from agentsim.population import distributions

_POINTS = 20_000
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def expected(population: Population) -> dict[str, dict[str, Any]]:
    """What the file asks for, attribute by attribute, ready for JSON.

    Returns:
        By attribute name. Categories: `{"shares": {category: share}}`, shares sum to 1. Numbers:
        `mean`, `sd`, `low`, `high` and `quantiles` (`{"0.05": …}`), computed from 20,000
        quantiles of the distribution.
    """
    points = (np.arange(_POINTS) + 0.5) / _POINTS
    found: dict[str, dict[str, Any]] = {}
    for name, attribute in population.attributes.items():
        if isinstance(attribute, Categories):
            total = sum(attribute.categories.values())
            found[name] = {"shares": {k: v / total for k, v in attribute.categories.items()}}
        elif isinstance(attribute, Integer):
            found[name] = _numbers(distributions.integers(attribute.integer, points))
        else:
            found[name] = _numbers(distributions.reals(attribute.real, points))
    return found


def marginals(table: pa.Table) -> dict[str, dict[str, Any]]:
    """What was drawn, in the shape of `expected`, ready for JSON.

    Args:
        table: from `sample`, or from `read_personas`, whose other columns are left out.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in distributions.attribute_names(table.column_names):
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            found[name] = {"shares": _drawn_shares(column)}
        elif len(column):
            found[name] = _numbers(column.to_numpy())
        else:
            found[name] = {}
    return found


def _drawn_shares(column: Any) -> dict[str, float]:
    column = column.unify_dictionaries()
    shares: dict[str, float] = {}
    if column.num_chunks:
        shares = dict.fromkeys(column.chunk(0).dictionary.to_pylist(), 0.0)
    counted: Any = pc.value_counts(column.cast(pa.string()))
    for row in counted.to_pylist():
        shares[row["values"]] = row["counts"] / len(column)
    return shares


def _numbers(values: NDArray[Any]) -> dict[str, Any]:
    quantiles = np.quantile(values, _QUANTILES)
    return {
        "mean": float(np.mean(values)),
        "sd": float(np.std(values)),
        "low": float(np.min(values)),
        "high": float(np.max(values)),
        "quantiles": {f"{p:g}": float(q) for p, q in zip(_QUANTILES, quantiles, strict=True)},
    }


def describe(population: Population) -> str:
    """The population in words, a line an attribute, each ending without a full stop."""
    lines = [f"{_one_line(n)}: {_in_words(a)}" for n, a in population.attributes.items()]
    allocated = {
        "quota": "quota (marginals are exact in every session)",
        "random": "random (every agent draws for itself)",
    }
    return "\n".join([*lines, f"allocation: {allocated[population.allocation]}"])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _in_words(attribute: Attribute) -> str:
    if isinstance(attribute, Categories):
        total = sum(attribute.categories.values())
        shares = attribute.categories.items()
        return ", ".join(f"{_one_line(name)} {100 * share / total:.4g} %" for name, share in shares)
    if isinstance(attribute, Integer):
        return f"whole number, {_distribution(attribute.integer)}"
    return f"real number, {_distribution(attribute.real)}"


def _distribution(distribution: Distribution) -> str:
    if isinstance(distribution, NormalOf):
        normal = distribution.normal
        return (
            f"normal with mean {normal.mean:g} and sd {normal.sd:g}, "
            f"truncated to {normal.low:g} to {normal.high:g}"
        )
    if isinstance(distribution, HistogramOf):
        edges, shares = distribution.histogram.edges, distribution.histogram.shares
        total = sum(shares)
        bins = zip(edges, edges[1:], shares, strict=False)
        return "histogram: " + ", ".join(
            f"{low:g} to {high:g} {100 * share / total:.4g} %" for low, high, share in bins
        )
    return f"uniform from {distribution.uniform.low:g} to {distribution.uniform.high:g}"
