"""A run's raw replies, read again with today's rules. Nothing is written.

What is read again is what was settled; replies that wrote personas are not numbers and stay out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from agentsim.errors import ResultsError, UserError
from agentsim.replies import STATUSES, Status, read
from agentsim.results.columns import strings, to_numpy
from agentsim.results.compare_requests import place_of_request
from agentsim.results.directory import RunDirectory
from agentsim.results.manifest import read_manifest
from agentsim.results.parts import parts
from agentsim.results.pieces import Pieces
from agentsim.results.statistics import exact_mean

_OK = STATUSES.index(Status.OK)
_FAILED = STATUSES.index(Status.FAILED)
_NAMES = [str(status) for status in STATUSES]
_KEYS = ("session", "round", "agent", "step", "attempt")


class Chain(StrEnum):
    """What another reading would have meant for what was asked next; it cannot be known."""

    SAME = ""
    NOT_AGAIN = "it would not have been asked again"
    AGAIN = "it would have been asked again"
    OTHERWISE = "it would have been asked again in other words"


@dataclass(frozen=True, slots=True)
class Change:
    """One reply that is read otherwise today.

    Attributes:
        place: in words.
        where: session, round, agent, step and attempt; the last two from 0.
        before, after: statuses.
        value_before, value_after: values, None unless the status is ok.
        reason: why, in the words of today's reading.
        chain: what the new reading would have meant for the questions after it.
        text: the reply.
    """

    place: str
    where: dict[str, int]
    before: str
    after: str
    value_before: float | None
    value_after: float | None
    reason: str
    chain: Chain
    text: str


@dataclass(frozen=True, slots=True)
class RoundChange:
    """Valid actions and their mean in one round, as recorded and as they are read today.

    An action's value today is that of its first attempt that is ok today.
    """

    session: int
    round: int
    valid_before: int
    valid_after: int
    mean_before: float | None
    mean_after: float | None


@dataclass(frozen=True, slots=True)
class _Rule:
    low: float
    high: float
    target: str
    attempts: int


@dataclass(frozen=True, slots=True, eq=False)
class _Changed:
    """The replies of one row group that are read otherwise: rows, and how they were read."""

    piece: int
    rows: NDArray[np.int64]
    before: NDArray[np.uint8]
    after: NDArray[np.uint8]


class Reread:
    """The result of reading a run again. Use `reread`.

    Attributes:
        path: the run's directory.
        recorded_by: the version of agentsim that recorded it.
        replies: how many replies were read; requests that got none are not among them.
        failed: how many requests got none.
        counts: (status before, status today) → how many; ok to ok: with another value.
        chains: what new readings would have meant for questions after them → how many.
        rounds: by session and round.
    """

    def __init__(self, path: Path, recorded_by: str, rule: _Rule) -> None:
        self.path = path
        self.recorded_by = recorded_by
        self.replies = self.failed = 0
        self.counts: Counter[tuple[str, str]] = Counter()
        self.chains: Counter[Chain] = Counter()
        self.rounds: list[RoundChange] = []
        self._rule = rule
        self._changed: list[_Changed] = []

    @property
    def changed(self) -> int:
        """How many replies are read otherwise."""
        return self.counts.total()

    def take(self, table: Pieces, piece: int, values: _Values) -> None:
        """Read the replies of one row group; equal ones are read once."""
        keys = {name: to_numpy(table.piece(piece, name)) for name in _KEYS}
        players = np.flatnonzero(keys["round"] > 0)
        before = _codes(table.piece(piece, "status"), _NAMES)
        final = _bits(table.piece(piece, "final"))
        old = to_numpy(table.piece(piece, "value"))
        replied = players[before[players] != _FAILED]
        after, new = before.copy(), np.full(len(before), np.nan)
        after[replied], new[replied] = _readings(table, piece, replied, self._rule)
        self.replies += len(replied)
        self.failed += len(players) - len(replied)
        same = (before == after) & ((old == new) | (np.isnan(old) & np.isnan(new)))
        rows = replied[~same[replied]]
        if rows.size:
            self._changed.append(_Changed(piece, rows, before[rows], after[rows]))
        for row in rows.tolist():
            kind = _NAMES[before[row]], _NAMES[after[row]]
            self.counts[kind] += 1
            self.chains[self._chain(kind, bool(final[row]), int(keys["attempt"][row]))] += 1
        was_ok = final & (before == _OK)
        values.add(keys, players, (was_ok, old), (after == _OK, new))

    def _chain(self, kind: tuple[str, str], final: bool, attempt: int) -> Chain:
        """What another reading would have meant for the questions after it."""
        before, after = (status == str(Status.OK) for status in kind)
        if before:
            again = not after and attempt + 1 < self._rule.attempts
            return Chain.AGAIN if again else Chain.SAME
        if final:
            return Chain.SAME
        if after:
            return Chain.NOT_AGAIN
        return Chain.OTHERWISE if kind[0] != kind[1] else Chain.SAME

    def changes(self) -> Iterator[Change]:
        """Every reply that is read otherwise, in order of the table, read from it again.

        Raises:
            ResultsError: the table cannot be read.
        """
        with Pieces(parts(RunDirectory(self.path), "requests")) as table:
            for changed in self._changed:
                for row in changed.rows.tolist():
                    yield self._change(table, int(table.starts[changed.piece]) + row)

    def examples(self, each: int) -> Iterator[Change]:
        """The first few of each kind."""
        shown: Counter[tuple[str, str]] = Counter()
        wanted = {kind: min(each, number) for kind, number in self.counts.items()}
        with Pieces(parts(RunDirectory(self.path), "requests")) as table:
            for changed in self._changed:
                for row, before, after in zip(
                    changed.rows.tolist(), changed.before, changed.after, strict=True
                ):
                    kind = (_NAMES[before], _NAMES[after])
                    if shown[kind] < wanted[kind]:
                        shown[kind] += 1
                        yield self._change(table, int(table.starts[changed.piece]) + row)
                if shown == wanted:
                    return

    def _change(self, table: Pieces, row: int) -> Change:
        place, where = place_of_request(table, row)
        text, before = table.value(row, "text"), table.value(row, "status")
        reading = _read(
            text, table.value(row, "finish_reason"), table.value(row, "format"), self._rule
        )
        final = bool(table.value(row, "final"))
        return Change(
            place,
            where,
            before,
            str(reading.status),
            table.value(row, "value"),
            reading.value,
            reading.reason,
            self._chain((before, str(reading.status)), final, where["attempt"]),
            text,
        )


def reread(path: Path) -> Reread:
    """Read the replies of a run again, with its own format, range and target.

    Args:
        path: the run's directory.

    Raises:
        UserError: a program of the user's was run, and it reads replies itself.
        ResultsError: no run is there, or it cannot be read.
    """
    directory = RunDirectory.open(path)
    manifest = read_manifest(path)
    result = Reread(path, str(manifest.get("agentsim", "")), _rule_of(path, manifest))
    values = _Values()
    with Pieces(parts(directory, "requests")) as table:
        for piece in range(len(table.starts) - 1):
            result.take(table, piece, values)
    result.rounds = list(values.rounds())
    return result


def _rule_of(path: Path, manifest: dict[str, Any]) -> _Rule:
    scenario = manifest.get("scenario") or {}
    if scenario.get("workflow"):
        raise UserError(f"{path}: a program of its own was run; how it reads replies is its own")
    game = scenario.get("game") or {}
    try:
        low, high = game["range"]
        attempts = (scenario.get("replies") or {}).get("attempts", 1)
        return _Rule(float(low), float(high), str(game["target"]), int(attempts))
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(f"{path}: the manifest does not say how replies are read") from error


def _readings(
    table: Pieces, piece: int, rows: NDArray[np.int64], rule: _Rule
) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """How some replies are read today."""
    columns = [table.piece(piece, name) for name in ("text", "finish_reason", "format")]
    codes, kinds = [], []
    for column in columns:
        coded: Any = pc.dictionary_encode(column)
        codes.append(to_numpy(coded.indices)[rows])
        kinds.append(coded.dictionary.to_pylist())
    if not rows.size:
        return np.empty(0, np.uint8), np.empty(0)
    distinct, inverse = np.unique(np.stack(codes), axis=1, return_inverse=True)
    readings = [
        _read(kinds[0][text], kinds[1][reason], kinds[2][format], rule)
        for text, reason, format in distinct.T.tolist()
    ]
    statuses = np.array([STATUSES.index(reading.status) for reading in readings], np.uint8)
    numbers = np.array([np.nan if r.value is None else r.value for r in readings])
    return statuses[inverse.ravel()], numbers[inverse.ravel()]


def _read(text: str, finish_reason: str, format: str, rule: _Rule) -> Any:
    return read(
        text,
        finish_reason=finish_reason,
        low=rule.low,
        high=rule.high,
        target=rule.target,
        format=format,
    )


class _Values:
    """Values of all attempts, gathered to find each action's."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[Any], ...]] = []
        self._rounds: set[int] = set()

    def add(
        self,
        keys: dict[str, NDArray[Any]],
        rows: NDArray[np.int64],
        before: tuple[NDArray[np.bool_], NDArray[np.float64]],
        after: tuple[NDArray[np.bool_], NDArray[np.float64]],
    ) -> None:
        """Take some rows: which are the valid actions of the run, and which are ok today."""
        code = (keys["session"].astype(np.int64) << 32) | keys["round"]
        self._rounds |= set(np.unique(code[rows]).tolist())
        kept = rows[before[0][rows] | after[0][rows]]
        columns = (code, *(keys[name] for name in _KEYS[2:]), *before, *after)
        self._parts.append(tuple(column[kept] for column in columns))

    def rounds(self) -> Iterator[RoundChange]:
        """Each round, in order."""
        if not self._parts:
            return
        columns = [np.concatenate(column) for column in zip(*self._parts, strict=True)]
        code, agent, step, attempt, was_ok, old, is_ok, new = columns
        order = np.lexsort((attempt, step, agent, code))
        order = order[is_ok[order]]
        first = np.ones(len(order), np.bool_)
        first[1:] = (np.diff(code[order]) != 0) | (np.diff(agent[order].astype(np.int64)) != 0)
        today = _by_round(code[order[first]], new[order[first]])
        then = _by_round(code[was_ok], old[was_ok])
        nothing = np.empty(0)
        for one in sorted(self._rounds):
            a, b = then.get(one, nothing), today.get(one, nothing)
            session, round = one >> 32, one & 0xFFFFFFFF
            yield RoundChange(session, round, a.size, b.size, exact_mean(a), exact_mean(b))


def _by_round(
    codes: NDArray[np.int64], values: NDArray[np.float64]
) -> dict[int, NDArray[np.float64]]:
    if not codes.size:
        return {}
    order = np.argsort(codes, kind="stable")
    distinct, starts = np.unique(codes[order], return_index=True)
    return dict(zip(distinct.tolist(), np.split(values[order], starts[1:]), strict=True))


def _codes(column: pa.Array[Any], names: list[str]) -> NDArray[np.uint8]:
    found = pc.index_in(column, value_set=strings(names).cast(column.type))
    return to_numpy(found).astype(np.uint8)


def _bits(column: pa.Array[Any]) -> NDArray[np.bool_]:
    return to_numpy(pc.cast(column, pa.uint8())).astype(np.bool_)
