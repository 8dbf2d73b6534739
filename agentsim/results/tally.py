"""Counts of attempts by round, read from the table `requests` a file at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from agentsim.ids import Round
from agentsim.replies import STATUSES, Status
from agentsim.results.columns import to_numpy
from agentsim.results.directory import RunDirectory
from agentsim.results.parts import part_of, parts, read_part
from agentsim.results.statistics import exact_mean

TOP_REASONS = 10
_OK = STATUSES.index(Status.OK)
_COLUMNS = [
    "session",
    "round",
    "agent",
    "attempt",
    "status",
    "reason",
    "value",
    "prompt_tokens",
    "completion_tokens",
    "latency_s",
]


@dataclass(slots=True)
class RoundTally:
    """Attempts of one round.

    Attributes:
        by_attempt: `(attempts, statuses)` int64: how many first, second, … attempts have each
            status of `replies.STATUSES`.
        first_n: valid first attempts.
        first_mean: their mean; None without any.
        prompt_tokens, completion_tokens: of all attempts.
        latency_median_s, latency_p95_s: of one attempt.
    """

    by_attempt: NDArray[np.int64]
    first_n: int
    first_mean: float | None
    prompt_tokens: int
    completion_tokens: int
    latency_median_s: float
    latency_p95_s: float


@dataclass(slots=True)
class Tally:
    """Attempts of a run.

    Attributes:
        rounds: by round; empty for scripted players.
        reasons: (status, reason) → how many attempts, for those that were not valid.
    """

    rounds: dict[Round, RoundTally] = field(default_factory=dict)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)


def tally(directory: RunDirectory) -> Tally:
    """Count the attempts of all settled rounds; those that wrote personas (round 0) are not here.

    Raises:
        ResultsError: the table cannot be read.
    """
    result = Tally()
    for path in parts(directory, "requests"):
        table = read_part(path, _COLUMNS)
        if part_of(path)[0].round == 0:
            table = table.filter(pa.array(column(table, "round") > 0))
        columns = {name: column(table, name) for name in _COLUMNS if name != "reason"}
        for key, rows in stretches(columns["session"], columns["round"]):
            result.rounds[key] = _round({name: col[rows] for name, col in columns.items()})
        _count_reasons(table, columns["status"], result.reasons)
    return result


def column(table: pa.Table, name: str) -> NDArray[Any]:
    """A column as numpy: numbers with nan for null, statuses as indices in `replies.STATUSES`."""
    chunked = table.column(name)
    if pa.types.is_dictionary(chunked.type):
        values, codes = _coded(chunked)
        order = np.array([STATUSES.index(Status(value)) for value in values] or [0], np.uint8)
        return order[codes]
    chunks = [to_numpy(chunk) for chunk in chunked.chunks]
    return np.concatenate(chunks) if chunks else np.empty(0)


def group_codes(table: pa.Table) -> tuple[list[str], NDArray[np.int64]]:
    """Names of the groups in a table of actions, and which one each row has; no names, and -1,
    where there are no groups."""
    chunks: list[Any] = table.column("group").unify_dictionaries().chunks
    if not chunks or all(chunk.null_count == len(chunk) for chunk in chunks):
        return [], np.full(len(table), -1)
    codes = [to_numpy(chunk.indices.fill_null(-1)).astype(np.int64) for chunk in chunks]
    return chunks[0].dictionary.to_pylist(), np.concatenate(codes)


def stretches(
    sessions: NDArray[np.int32], rounds: NDArray[np.int32]
) -> Iterator[tuple[Round, slice]]:
    """Which rows belong to which round; the rows of one round stand together."""
    if not len(sessions):
        return
    new = (np.diff(sessions) != 0) | (np.diff(rounds) != 0)
    starts = [0, *(np.flatnonzero(new) + 1).tolist(), len(sessions)]
    for start, end in pairwise(starts):
        yield Round(int(sessions[start]), int(rounds[start])), slice(start, end)


def _round(columns: dict[str, NDArray[Any]]) -> RoundTally:
    attempt, status = columns["attempt"], columns["status"]
    shape = (int(attempt.max()) + 1, len(STATUSES))
    flat = np.bincount(attempt * shape[1] + status, minlength=shape[0] * shape[1])
    first = (attempt == 0) & (status == _OK)
    values = columns["value"][first]
    median, p95 = np.quantile(columns["latency_s"].astype(np.float64), (0.5, 0.95))
    return RoundTally(
        by_attempt=flat.reshape(shape).astype(np.int64),
        first_n=len(values),
        first_mean=exact_mean(values),
        prompt_tokens=int(columns["prompt_tokens"].sum(dtype=np.int64)),
        completion_tokens=int(columns["completion_tokens"].sum(dtype=np.int64)),
        latency_median_s=float(median),
        latency_p95_s=float(p95),
    )


def _count_reasons(
    table: pa.Table, status: NDArray[np.uint8], reasons: Counter[tuple[str, str]]
) -> None:
    values, codes = _coded(table.column("reason").dictionary_encode())
    bad = status != _OK
    pairs = codes[bad].astype(np.int64) * len(STATUSES) + status[bad]
    for pair, count in zip(*np.unique(pairs, return_counts=True), strict=True):
        reason, index = divmod(int(pair), len(STATUSES))
        reasons[str(STATUSES[index]), values[reason]] += int(count)


def _coded(chunked: pa.ChunkedArray[Any]) -> tuple[list[str], NDArray[np.int32]]:
    """The strings of a dictionary column and which one each row has."""
    chunks: list[Any] = chunked.unify_dictionaries().chunks
    if not chunks:
        return [], np.empty(0, np.int32)
    codes = [to_numpy(chunk.indices) for chunk in chunks]
    return chunks[0].dictionary.to_pylist(), np.concatenate(codes)
