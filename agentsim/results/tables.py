"""Settled rounds as Parquet: one file for each (session, round) while a run goes on,
or one for several small ones.

Files appear whole (written beside, then renamed). They are not forced to disk one by one: the
journal is, and `rebuild` makes them again from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from agentsim.ids import Round
from agentsim.results.directory import TABLES, RunDirectory
from agentsim.results.recorded import RecordedAttempts
from agentsim.results.rounds import RoundColumns, merged
from agentsim.results.rows import (
    ROW_GROUP_ROWS,
    actions_tables,
    announcements_table,
    request_tables,
)
from agentsim.results.schema import ACTIONS, ANNOUNCEMENTS, REQUESTS
from agentsim.results.storage import discard, failure, temporary_path

if TYPE_CHECKING:
    from agentsim.rpc.messages import Attempt, Settle


class Attempts(Protocol):
    """Attempts of one round in order of arrival, as many as their length says."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Attempt]: ...


_Settled = tuple[RoundColumns, Iterable["Attempt"], Sequence["Settle"]]
_Market = tuple[RoundColumns, RecordedAttempts, "Settle"]

# Dictionaries are worth their time only where few values repeat; other columns do without.
_REPEATING = (
    "session",
    "round",
    "group",
    "status",
    "payoff",
    "attempts",
    "model",
    "messages.list.element.role",
    "format",
    "finish_reason",
    "reason",
    "endpoint",
)


class TableWriter:
    """Writes settled rounds; small ones wait for others, and share a file.

    What could not be written waits, too: call `flush`, or `finish`, again.

    A Parquet file costs a millisecond, whatever is in it: for thousands of small sessions a file
    for each round would cost more than the rounds. The markets of a round stand in the tables
    together: one that is settled waits for the others.
    """

    def __init__(self, directory: RunDirectory, *, hold_rows: int = 16 * 1024) -> None:
        """
        Args:
            directory: where.
            hold_rows: rows (of actions and requests) that may wait in memory; 0: none.
        """
        self._directory = directory
        self._hold_rows = hold_rows
        self._waiting: list[_Settled] = []
        self._rows = 0
        self._markets: dict[Round, list[_Market]] = {}

    def move(self, directory: RunDirectory) -> None:
        """Write what follows, and what waits, into another directory."""
        self._directory = directory

    def write(self, columns: RoundColumns, attempts: Attempts, settle: Settle) -> None:
        """Take a settled round, or one market of it: see `write_round`.

        Args:
            columns: the final actions.
            attempts: of the round; where it has several markets, those of all of them, recorded.
            settle: how it ended.

        Raises:
            ResultsError: a file could not be written.
        """
        if settle.markets == 1:
            self._take(columns, attempts, [settle])
            return
        if not isinstance(attempts, RecordedAttempts):
            raise TypeError("attempts of a round with several markets must be recorded")
        key = Round(settle.session, settle.round)
        markets = self._markets.setdefault(key, [])
        markets.append((columns, attempts, settle))
        if len(markets) == settle.markets:
            self._take(*_together(self._markets.pop(key)))

    def _take(self, columns: RoundColumns, attempts: Attempts, settles: Sequence[Settle]) -> None:
        self._waiting.append((columns, attempts, settles))
        self._rows += len(columns) + len(attempts)
        if self._rows >= self._hold_rows:
            self.flush()

    def finish(self) -> None:
        """Write what waits, and rounds of which some markets are settled: nothing more will come.

        Raises:
            ResultsError: a file could not be written.
        """
        for key in sorted(self._markets):
            self._take(*_together(self._markets.pop(key)))
        self.flush()

    def flush(self) -> None:
        """Write what waits. Call it every few seconds, and `finish` at the end.

        Raises:
            ResultsError: a file could not be written.
        """
        if self._waiting:
            _write(self._directory, self._waiting)
        self._waiting, self._rows = [], 0


def write_round(
    directory: RunDirectory,
    columns: RoundColumns,
    attempts: Iterable[Attempt],
    settle: Settle,
) -> None:
    """Write a settled round's part of each table; what is there from an earlier try is replaced.

    Args:
        directory: where.
        columns: the final actions.
        attempts: all attempts of the round in order of arrival, read once and not kept; none for
            scripted players. One that comes twice is written once.
        settle: how the round ended.

    Raises:
        ResultsError: a file could not be written.
    """
    _write(directory, [(columns, attempts, [settle])])


def _together(markets: Sequence[_Market]) -> tuple[RoundColumns, Attempts, list[Settle]]:
    """Settled markets of one round as one."""
    markets = sorted(markets, key=lambda market: market[2].market)
    settles = [settle for _, _, settle in markets]
    columns = merged([columns for columns, _, _ in markets])
    attempts = markets[0][1]
    if len(markets) < settles[0].markets:
        attempts = attempts.of_agents(columns.agents.tolist())
    return columns, attempts, settles


def _write(directory: RunDirectory, rounds: Sequence[_Settled]) -> None:
    """Write rounds into one file of each table, or into none."""
    rounds = sorted(rounds, key=lambda settled: (settled[2][0].session, settled[2][0].round))
    keys = [Round(settles[0].session, settles[0].round) for _, _, settles in rounds]
    name = part_name(keys[0], keys[-1])
    actions = (
        table
        for (columns, _, _), key in zip(rounds, keys, strict=True)
        for table in actions_tables(columns, key)
    )
    requests = (table for _, attempts, _ in rounds for table in request_tables(attempts))
    announcements = announcements_table([settle for _, _, settles in rounds for settle in settles])
    try:
        write_part(directory.actions / name, ACTIONS, actions)
        write_part(directory.requests / name, REQUESTS, requests)
        write_part(directory.announcements / name, ANNOUNCEMENTS, [announcements])
    except BaseException:
        # Another try may be about more rounds, and have another name.
        for table in TABLES:
            discard(directory.table(table) / name)
        raise


def part_name(first: Round, last: Round) -> str:
    """File name of the rounds from the first to the last; one alone has a short name."""
    name = f"s{first.session:04d}-r{first.round:04d}"
    if first != last:
        name += f"_s{last.session:04d}-r{last.round:04d}"
    return name + ".parquet"


def write_part(path: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write one Parquet file from its pieces; it appears whole, and not at all without rows.

    Raises:
        ResultsError: it could not be written.
    """
    temporary = temporary_path(path)
    writer: pq.ParquetWriter | None = None
    try:
        try:
            for table in _in_row_groups(tables):
                if writer is None:
                    writer = _writer(temporary, schema)
                writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        finally:
            if writer is not None:
                writer.close()
        if writer is not None:
            temporary.replace(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        discard(temporary)
        raise failure(path, "cannot write the table", error) from error
    except BaseException:
        discard(temporary)
        raise


def _in_row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of at least a row group, except the last."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += len(table)
        if rows >= ROW_GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.concat_tables(waiting)


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    repeating: Any = [name for name in _REPEATING if name.split(".")[0] in schema.names]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=repeating,
        column_encoding={"agent": "DELTA_BINARY_PACKED"} if "agent" in schema.names else None,
    )
