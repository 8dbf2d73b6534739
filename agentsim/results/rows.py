"""Rows of the three tables out of a settled round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from agentsim.replies import STATUSES, Status
from agentsim.results.columns import booleans, coded, names, numbers, optional_numbers, strings
from agentsim.results.rounds import RoundColumns, identity
from agentsim.results.schema import ACTIONS, ANNOUNCEMENTS, REQUESTS

if TYPE_CHECKING:
    from agentsim.rpc.messages import Attempt, Settle

ROW_GROUP_ROWS = 64 * 1024
_REQUEST_BATCH_ROWS = 8 * 1024
_OK = STATUSES.index(Status.OK)


def actions_tables(columns: RoundColumns, settle: Settle) -> Iterator[pa.Table]:
    """Rows of `actions` for one round, a row group at a time."""
    for start in range(0, len(columns), ROW_GROUP_ROWS):
        rows = slice(start, min(start + ROW_GROUP_ROWS, len(columns)))
        yield _actions_table(columns, rows, (settle.session, settle.round))


def request_tables(attempts: Iterable[Attempt]) -> Iterator[pa.Table]:
    """Rows of `requests`, some thousands at a time, each attempt once."""
    seen: set[int] = set()
    rest = iter(attempts)
    while batch := list(islice(rest, _REQUEST_BATCH_ROWS)):
        new = []
        for attempt in batch:
            key = identity(attempt)
            if key not in seen:
                seen.add(key)
                new.append(attempt)
        yield _requests_table(new)


def announcements_table(settles: Sequence[Settle]) -> pa.Table:
    """One row of `announcements` for each settled round."""
    columns: dict[str, list[Any]] = {
        name: [getattr(settle, name) for settle in settles]
        for name in ("session", "round", "n", "target", "mean", "median", "winning_guess", "wall_s")
    }
    columns["winners"] = [len(settle.winners) for settle in settles]
    for status in STATUSES:
        columns[str(status)] = [settle.statuses.get(str(status), 0) for settle in settles]
    arrays = {
        name: optional_numbers(values, ANNOUNCEMENTS.field(name).type)
        for name, values in columns.items()
    }
    announced = [pair for settle in settles for pair in settle.announced.items()]
    ends = np.cumsum([0, *(len(settle.announced) for settle in settles)])
    offsets: Any = numbers(ends, pa.int32())
    arrays["announced"] = pa.MapArray.from_arrays(
        offsets,
        strings([name for name, _ in announced]),
        numbers([value for _, value in announced], pa.float64()),
    )
    return _table(arrays, ANNOUNCEMENTS)


def _actions_table(columns: RoundColumns, rows: slice, key: tuple[int, int]) -> pa.Table:
    n = rows.stop - rows.start
    statuses = columns.statuses[rows]
    arrays = {
        "session": numbers(np.full(n, key[0]), pa.int32()),
        "round": numbers(np.full(n, key[1]), pa.int32()),
        "agent": numbers(columns.agents[rows], pa.uint32()),
        "group": pa.nulls(n, ACTIONS.field("group").type),
        "status": coded(statuses, [str(status) for status in STATUSES]),
        "value": numbers(columns.values[rows], pa.float64(), valid=statuses == _OK),
        "won": booleans(columns.won[rows]),
        "payoff": numbers(columns.payoffs[rows], pa.float64()),
        "attempts": numbers(columns.attempts[rows], pa.int16()),
        "text": pa.nulls(n, pa.string()) if columns.text is None else strings(columns.text[rows]),
        "model": coded(np.zeros(n), [columns.model]),
    }
    for name in ("prompt_tokens", "completion_tokens", "latency_s"):
        values, type = getattr(columns, name), ACTIONS.field(name).type
        arrays[name] = pa.nulls(n, type) if values is None else numbers(values[rows], type)
    return _table(arrays, ACTIONS)


def _requests_table(attempts: Sequence[Attempt]) -> pa.Table:
    arrays: dict[str, pa.Array[Any]] = {}
    for field in REQUESTS:
        if field.name != "messages":
            values = [getattr(attempt, field.name) for attempt in attempts]
            arrays[field.name] = _array(values, field.type)
    flat = [message for attempt in attempts for message in attempt.messages]
    ends = np.cumsum([0, *(len(attempt.messages) for attempt in attempts)])
    type: Any = REQUESTS.field("messages").type
    parts = [strings([m.role for m in flat]), strings([m.content for m in flat])]
    offsets: Any = numbers(ends, pa.int32())
    arrays["messages"] = pa.ListArray.from_arrays(
        offsets,
        pa.StructArray.from_arrays(parts, fields=list(type.value_type)),
        type=type,
    )
    return _table(arrays, REQUESTS)


def _array(values: list[Any], type: pa.DataType) -> pa.Array[Any]:
    if pa.types.is_dictionary(type):
        return names(values)
    if pa.types.is_string(type):
        return strings(values)
    if pa.types.is_boolean(type):
        return booleans(values)
    return optional_numbers(values, type)


def _table(arrays: dict[str, pa.Array[Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays([arrays[name] for name in schema.names], schema=schema)
