"""Counts of the final actions, read from the tables a file at a time: memory follows the number of
rounds, sessions and cells, not the number of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from agentsim.replies import STATUSES, Status
from agentsim.report.attributes import Attribute
from agentsim.results.columns import to_numpy
from agentsim.results.directory import RunDirectory
from agentsim.results.parts import parts, read_part
from agentsim.results.tally import column

_OK = STATUSES.index(Status.OK)
_FINE_FROM = 2_000
_COARSE_BINS, _FINE_BINS = 20, 50
_COLUMNS = ["session", "round", "agent", "group", "status", "value"]


@dataclass(slots=True)
class AttributeCounts:
    """Valid guesses by session, round and cell of one attribute.

    Attributes:
        attribute: whose cells.
        n: `(sessions, rounds, cells)` int64, valid guesses.
        sums: the same shape, float64, their sums in the game's unit.
    """

    attribute: Attribute
    n: NDArray[np.int64]
    sums: NDArray[np.float64]


@dataclass(slots=True)
class Counts:
    """What the figures show of the actions.

    Attributes:
        rounds: numbers of the rounds that are settled in at least one session, ascending; the
            first axis of the arrays.
        sessions: numbers of the sessions that have a settled round, ascending.
        edges: `(bins + 1,)` float64, in the game's unit; a bin holds its lower edge, the last one
            both.
        histogram: `(rounds, bins)` int64, valid guesses, pooled over sessions.
        groups: names of groups; one empty name when there are none.
        statuses: `(rounds, groups, statuses)` int64, final actions, in the order of
            `replies.STATUSES`.
        attributes: valid guesses by attribute; empty without a population.
    """

    rounds: list[int]
    sessions: list[int]
    edges: NDArray[np.float64]
    histogram: NDArray[np.int64]
    groups: list[str]
    statuses: NDArray[np.int64]
    attributes: list[AttributeCounts] = field(default_factory=list)


def count_actions(
    directory: RunDirectory,
    rounds: Sequence[Mapping[str, Any]],
    attributes: Sequence[Attribute],
    limits: tuple[float, float] | None,
) -> Counts:
    """Count the final actions of a run.

    Args:
        directory: the run's.
        rounds: `rounds` of its summary.
        attributes: of its people.
        limits: smallest and largest guess of the game; None: those that were made.

    Raises:
        ResultsError: a table cannot be read.
    """
    counts = _empty(rounds, attributes, limits)
    for path in parts(directory, "actions"):
        _add(counts, read_part(path, _COLUMNS))
    return counts


def bins_for(rounds: Sequence[Mapping[str, Any]]) -> int:
    """Bins of the histogram: narrow ones where there are guesses enough to fill them."""
    valid: dict[int, int] = {}
    for row in rounds:
        valid[row["round"]] = valid.get(row["round"], 0) + row["valid"]
    return _FINE_BINS if max(valid.values(), default=0) >= _FINE_FROM else _COARSE_BINS


def _empty(
    rounds: Sequence[Mapping[str, Any]],
    attributes: Sequence[Attribute],
    limits: tuple[float, float] | None,
) -> Counts:
    numbers = sorted({row["round"] for row in rounds})
    sessions = sorted({row["session"] for row in rounds})
    if limits is None:
        made = [row[key] for row in rounds for key in ("min", "max") if row[key] is not None]
        limits = (min(made), max(made)) if made else (0.0, 1.0)
    low, high = limits if limits[0] < limits[1] else (limits[0] - 0.5, limits[0] + 0.5)
    bins = bins_for(rounds)
    shape = (len(sessions), len(numbers))
    return Counts(
        rounds=numbers,
        sessions=sessions,
        edges=np.linspace(low, high, bins + 1),
        histogram=np.zeros((len(numbers), bins), np.int64),
        groups=[],
        statuses=np.zeros((len(numbers), 0, len(STATUSES)), np.int64),
        attributes=[
            AttributeCounts(
                attribute,
                np.zeros((*shape, len(attribute.cells)), np.int64),
                np.zeros((*shape, len(attribute.cells))),
            )
            for attribute in attributes
        ],
    )


def _add(counts: Counts, table: pa.Table) -> None:
    """Add the actions of one file."""
    if not len(table):
        return
    session = np.searchsorted(counts.sessions, column(table, "session"))
    round = np.searchsorted(counts.rounds, column(table, "round"))
    status = column(table, "status")
    _add_statuses(counts, round, _groups(counts, table), status)
    ok = status == _OK
    session, round, values = session[ok], round[ok], column(table, "value")[ok]
    bins = counts.histogram.shape[1]
    place = np.clip(np.searchsorted(counts.edges, values, side="right") - 1, 0, bins - 1)
    counts.histogram += _count(round * bins + place, counts.histogram.shape)
    if not counts.attributes:
        return
    agent = column(table, "agent")[ok].astype(np.int64)
    number = np.asarray(counts.sessions)[session]
    for each in counts.attributes:
        cells = each.n.shape[2]
        cell = each.attribute.codes[(number - 1) * each.attribute.agents + agent]
        key = (session * len(counts.rounds) + round) * cells + cell
        each.n += _count(key, each.n.shape)
        sums = np.bincount(key, weights=values, minlength=each.n.size)
        each.sums += sums.reshape(each.n.shape)


def _add_statuses(
    counts: Counts, round: NDArray[np.int64], group: NDArray[np.int64], status: NDArray[np.uint8]
) -> None:
    new = len(counts.groups) - counts.statuses.shape[1]
    if new:
        counts.statuses = np.pad(counts.statuses, ((0, 0), (0, new), (0, 0)))
    _, groups, statuses = counts.statuses.shape
    counts.statuses += _count((round * groups + group) * statuses + status, counts.statuses.shape)


def _groups(counts: Counts, table: pa.Table) -> NDArray[np.int64]:
    """Which group each row is of, as a place in `counts.groups`, which grows."""
    result: list[NDArray[np.int64]] = []
    for chunk in table.column("group").chunks:
        whole: Any = chunk
        names = ["" if name is None else str(name) for name in whole.dictionary.to_pylist()]
        indices: Any = whole.indices.fill_null(len(names))
        codes = to_numpy(indices)
        places = np.zeros(len(names) + 1, np.int64)
        for code in np.unique(codes).tolist():
            name = [*names, ""][code]
            if name not in counts.groups:
                counts.groups.append(name)
            places[code] = counts.groups.index(name)
        result.append(places[codes])
    return np.concatenate(result)


def _count(keys: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
    counted = np.bincount(keys, minlength=int(np.prod(shape)))
    return counted.astype(np.int64).reshape(shape)
