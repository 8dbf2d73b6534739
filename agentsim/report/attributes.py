"""The people of a run as cells: categories, or bins of numbers that hold about as many people."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from agentsim.errors import ResultsError
from agentsim.population import attribute_names
from agentsim.report.words import printable
from agentsim.results.columns import to_numpy
from agentsim.results.statistics import CONFIDENCE

if TYPE_CHECKING:
    from agentsim.report.counts import AttributeCounts

_MOST_CELLS = 12
_BINS = 4
_FEW_VALUES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """One attribute of everybody.

    Attributes:
        name: as the population has it.
        cells: their names, in order.
        codes: `(sessions * agents,)` uint8, the cell of each agent, session by session.
        agents: people in each session.
        sizes: `(cells,)` int64, people in each cell, over all sessions.
    """

    name: str
    cells: list[str]
    codes: NDArray[np.uint8]
    agents: int
    sizes: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CellMean:
    """The mean guess of one cell in one round.

    Attributes:
        attribute, cell: names.
        round: from 1.
        n: valid guesses, over all sessions.
        sessions: how many have a valid guess of this cell: the independent units.
        mean: of the sessions' means, None without any.
        sd: between these means; None for fewer than two sessions, as are
        low, high: the ends of Student's 95 % interval.
    """

    attribute: str
    cell: str
    round: int
    n: int
    sessions: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None


def read_attributes(path: Path, agents: int) -> list[Attribute]:
    """The attributes in a file of personas; none when there is no such file.

    Args:
        path: personas.parquet.
        agents: people in each session.

    Raises:
        ResultsError: it cannot be read.
    """
    if not path.exists():
        return []
    try:
        with pq.ParquetFile(path) as file:
            names = attribute_names(file.schema_arrow.names)
            return [
                attribute
                for name in names
                if (attribute := _attribute(name, file.read([name]).column(0), agents))
            ]
    except (OSError, pa.ArrowException) as error:
        raise ResultsError(f"cannot read the personas in {path}: {error}") from error


def cell_means(counts: AttributeCounts, rounds: list[int]) -> list[CellMean]:
    """Means by cell and round, with intervals that come from sessions alone."""
    found = counts.n > 0
    means = np.divide(counts.sums, counts.n, out=np.full(counts.n.shape, np.nan), where=found)
    sessions = found.sum(axis=0)
    total = np.where(found, means, 0).sum(axis=0)
    middle = np.divide(total, sessions, out=np.full(total.shape, np.nan), where=sessions > 0)
    squares = np.where(found, (means - middle) ** 2, 0).sum(axis=0)
    several = sessions > 1
    sd = np.sqrt(np.divide(squares, sessions - 1, out=np.zeros(total.shape), where=several))
    half = _half_widths(sessions, sd)
    n = counts.n.sum(axis=0)
    return [
        CellMean(
            counts.attribute.name,
            name,
            round,
            int(n[i, j]),
            int(sessions[i, j]),
            float(middle[i, j]) if sessions[i, j] else None,
            float(sd[i, j]) if several[i, j] else None,
            float(middle[i, j] - half[i, j]) if several[i, j] else None,
            float(middle[i, j] + half[i, j]) if several[i, j] else None,
        )
        for j, name in enumerate(counts.attribute.cells)
        for i, round in enumerate(rounds)
    ]


def _half_widths(sessions: NDArray[np.int64], sd: NDArray[np.float64]) -> NDArray[np.float64]:
    if not (sessions > 1).any():
        return np.zeros(sd.shape)
    from scipy.special import stdtrit

    degrees = np.maximum(sessions - 1, 1)
    quantile = np.asarray(stdtrit(degrees, (1 + CONFIDENCE) / 2))
    return np.asarray(quantile * sd / np.sqrt(np.maximum(sessions, 1)))


def _attribute(name: str, values: pa.ChunkedArray[Any], agents: int) -> Attribute | None:
    if not len(values):
        return None
    if pa.types.is_dictionary(values.type):
        cells, codes = _categories(values)
    elif pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        numbers = np.concatenate([to_numpy(chunk) for chunk in values.chunks])
        cells, codes = _bins(numbers, whole=pa.types.is_integer(values.type))
    else:
        return None
    return Attribute(
        printable(name),
        [printable(cell) for cell in cells],
        codes,
        agents,
        np.bincount(codes, minlength=len(cells)).astype(np.int64),
    )


def _categories(values: pa.ChunkedArray[Any]) -> tuple[list[str], NDArray[np.uint8]]:
    """Categories in their own order; the rarest together when there are very many."""
    chunks: list[Any] = values.unify_dictionaries().chunks
    names = [str(name) for name in chunks[0].dictionary.to_pylist()]
    codes = np.concatenate([to_numpy(chunk.indices) for chunk in chunks])
    sizes = np.bincount(codes, minlength=len(names))
    kept = np.flatnonzero(sizes)
    if len(kept) > _MOST_CELLS:
        kept = np.sort(np.argsort(-sizes, kind="stable")[: _MOST_CELLS - 1])
    cells = [names[i] for i in kept]
    places = np.full(len(names), len(cells), np.uint8)
    places[kept] = np.arange(len(kept))
    if (rest := int(np.count_nonzero(sizes)) - len(kept)) > 0:
        cells.append(f"{rest} others")
    return cells, places[codes]


def _bins(numbers: NDArray[Any], *, whole: bool) -> tuple[list[str], NDArray[np.uint8]]:
    """Bins with about as many people in each; single values when there are few."""
    distinct = np.unique(numbers)
    if len(distinct) <= _FEW_VALUES:
        codes = np.searchsorted(distinct, numbers)
        return [_number(value) for value in distinct.tolist()], codes.astype(np.uint8)
    inner = np.quantile(numbers, np.arange(1, _BINS) / _BINS)
    if whole:
        inner = np.ceil(inner)
    inner = np.unique(inner[(inner > distinct[0]) & (inner <= distinct[-1])])
    codes = np.searchsorted(inner, numbers, side="right")
    edges = [float(distinct[0]), *inner.tolist(), float(distinct[-1])]
    last = len(edges) - 2
    cells = []
    for i in range(last + 1):
        low, high = edges[i], edges[i + 1]
        if whole:
            high = high if i == last else high - 1
            cells.append(_number(low) if low == high else f"{_number(low)} to {_number(high)}")
        else:
            digits = _digits(edges)
            cells.append(f"{low:,.{digits}f} to {high:,.{digits}f}")
    return cells, codes.astype(np.uint8)


def _digits(edges: list[float]) -> int:
    """Decimals that tell the edges of bins apart."""
    closest = min(high - low for low, high in pairwise(edges))
    return int(np.clip(1 - np.floor(np.log10(closest)), 0, 6)) if closest > 0 else 6


def _number(value: float) -> str:
    return f"{value:,.10g}"
