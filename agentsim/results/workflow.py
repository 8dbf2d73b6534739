"""What a user's program leaves: its tables, its calls of language models, and their summary.

Both are in the journal first. The tables are written at the end, from the journal alone, so that
they can be made again: `requests/` with one row a call, and `tables/NAME.parquet` for each table
that the program recorded.

summary.json of such a run has `run` (id, name, state, reason, started, wall_s, cpu_s), `workflow`,
`sessions`, `calls` (total and by status), `tokens`, `tokens_per_s`, `latency_s` and `tables` (rows
of each). The status of a call says what came back (ok, truncated, empty, failed), not what the
program read in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import Struct

from agentsim.errors import ResultsError
from agentsim.ids import Round
from agentsim.replies import STATUSES
from agentsim.results.directory import TABLES, RunDirectory
from agentsim.results.framing import Kind, frames
from agentsim.results.rows import request_tables
from agentsim.results.schema import REQUESTS
from agentsim.results.storage import failure
from agentsim.results.tables import part_name, write_part
from agentsim.rpc.codec import decode
from agentsim.rpc.messages import Attempt

Value = str | float | int | bool | None
"""What a cell of a program's table can hold."""

RESERVED = frozenset({*TABLES, "personas"})
"""Names that a program's table cannot have."""
FOLDER = "tables"

_TYPES: Mapping[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


class Row(Struct, frozen=True, array_like=True):
    """One row that a program recorded.

    Attributes:
        table: its name.
        columns: name → value.
    """

    table: str
    columns: dict[str, Value]


class Columns:
    """The columns of one table, filled row by row; a column has one type."""

    def __init__(self) -> None:
        self._values: dict[str, list[Value]] = {}
        self._types: dict[str, type] = {}
        self.rows = 0

    def check(self, row: Mapping[str, Value]) -> None:
        """Take the row's types; a column of whole numbers may become one of numbers.

        Raises:
            TypeError: a column has values of another type already.
        """
        for name, value in row.items():
            if value is None:
                continue
            known, new = self._types.get(name, type(value)), type(value)
            if {known, new} == {int, float}:
                new = float
            elif known is not new:
                raise TypeError(
                    f"column {name!r} holds {known.__name__}, and {value!r} is {new.__name__}"
                )
            self._types[name] = new

    def add(self, row: Mapping[str, Value]) -> None:
        """Append a row; a cell that it lacks is null.

        Raises:
            TypeError: as `check`.
        """
        self.check(row)
        for name in row:
            self._values.setdefault(name, [None] * self.rows)
        for name, values in self._values.items():
            values.append(row.get(name))
        self.rows += 1

    def table(self) -> pa.Table:
        """All rows, in order, as Arrow."""
        names = list(self._values)
        arrays = [
            pa.array(self._values[name], _TYPES.get(self._types.get(name, str), pa.string()))
            for name in names
        ]
        return pa.Table.from_arrays(arrays, names=names)


def write_workflow_tables(directory: RunDirectory) -> None:
    """Write `requests/` and `tables/` of a run from its journal.

    Raises:
        ResultsError: the journal cannot be read, or a table cannot be written.
    """
    sessions = [attempt.session for attempt in _attempts(directory)]
    if sessions:
        name = part_name(Round(min(sessions), 1), Round(max(sessions), 1))
        pieces = request_tables(_attempts(directory), once=False)
        write_part(directory.requests / name, REQUESTS, pieces)
    tables = read_rows(directory)
    folder = directory.table(FOLDER)
    try:
        if tables:
            folder.mkdir(exist_ok=True)
    except OSError as error:
        raise failure(folder, "cannot make the directory", error) from error
    for name, columns in tables.items():
        table = columns.table()
        write_part(folder / f"{name}.parquet", table.schema, [table])


def read_rows(directory: RunDirectory) -> dict[str, Columns]:
    """The tables of a program, from the journal.

    Raises:
        ResultsError: it cannot be read.
    """
    tables: dict[str, Columns] = {}
    for frame in frames(directory.journal):
        if frame.kind is Kind.ROW:
            try:
                row = decode(frame.body, Row)
                tables.setdefault(row.table, Columns()).add(row.columns)
            except (msgspec.DecodeError, TypeError) as error:
                raise ResultsError(
                    f"{directory.journal}: the record at byte {frame.offset} does not make sense: "
                    f"{error}"
                ) from error
    return tables


def table_path(directory: RunDirectory, name: str) -> Path:
    """The file of a program's table."""
    return directory.table(FOLDER) / f"{name}.parquet"


def table_names(directory: RunDirectory) -> list[str]:
    """Names of the tables that a program has recorded and that are written."""
    return sorted(path.stem for path in directory.table(FOLDER).glob("*.parquet"))


def counts(directory: RunDirectory, wall_s: float | None) -> dict[str, Any]:
    """The part of the summary that is about calls and tables.

    Raises:
        ResultsError: the journal cannot be read.
    """
    statuses: Counter[str] = Counter()
    prompt = completion = 0
    latencies = []
    for attempt in _attempts(directory):
        statuses[attempt.status] += 1
        prompt += attempt.prompt_tokens
        completion += attempt.completion_tokens
        latencies.append(attempt.latency_s)
    total = statuses.total()
    latency = np.quantile(latencies, (0.5, 0.95)).tolist() if latencies else None
    return {
        "calls": {
            "total": total,
            "statuses": {str(s): statuses[str(s)] for s in STATUSES if statuses[str(s)]},
        },
        "tokens": {"prompt": prompt, "completion": completion, "total": prompt + completion},
        "tokens_per_s": completion / wall_s if total and wall_s else None,
        "latency_s": latency and {"median": latency[0], "p95": latency[1]},
        "tables": {name: columns.rows for name, columns in sorted(read_rows(directory).items())},
    }


def _attempts(directory: RunDirectory) -> Iterator[Attempt]:
    """The program's calls, in order."""
    for frame in frames(directory.journal):
        if frame.kind is Kind.ATTEMPTS:
            # Round 0 is when personas were written.
            yield from (a for a in decode(frame.body, list[Attempt]) if a.round)
