"""Rows of the three tables out of a settled round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from agentsim.replies import STATUSES, Status
from agentsim.results.columns import (
    booleans,
    coded,
    names,
    numbers,
    optional_names,
    optional_numbers,
    strings,
)
from agentsim.results.rounds import RoundColumns, identity
from agentsim.results.schema import ACTIONS, ANNOUNCEMENTS, REQUESTS

if TYPE_CHECKING:
    from agentsim.ids import Round
    from agentsim.rpc.messages import Attempt, GroupOutcome, Settle

ROW_GROUP_ROWS = 64 * 1024
_REQUEST_BATCH_ROWS = 8 * 1024
_OK = STATUSES.index(Status.OK)


def actions_tables(columns: RoundColumns, key: Round) -> Iterator[pa.Table]:
    """Rows of `actions` for one round, a row group at a time."""
    for start in range(0, len(columns), ROW_GROUP_ROWS):
        rows = slice(start, min(start + ROW_GROUP_ROWS, len(columns)))
        yield _actions_table(columns, rows, key)


def request_tables(attempts: Iterable[Attempt], *, once: bool = True) -> Iterator[pa.Table]:
    """Rows of `requests`, some thousands at a time.

    Args:
        attempts: in order.
        once: whether one that comes again is left out.
    """
    seen: set[int] = set()
    rest = iter(attempts)
    while batch := list(islice(rest, _REQUEST_BATCH_ROWS)):
        new = []
        for attempt in batch:
            key = identity(attempt)
            if not once or key not in seen:
                seen.add(key)
                new.append(attempt)
        yield _requests_table(new)


def announcements_table(settles: Sequence[Settle]) -> pa.Table:
    """Rows of `announcements`: one for each settled market, and one for each of its groups where
    it has several."""
    rows = [row for settle in settles for row in _announcements(settle)]
    columns: dict[str, list[Any]] = {
        name: [getattr(settle, name) for settle, _ in rows]
        for name in ("session", "round", "target", "winning_guess", "wall_s")
    }
    parts = [settle if group is None else group for settle, group in rows]
    for name in ("n", "mean", "median"):
        columns[name] = [getattr(part, name) for part in parts]
    columns["winners"] = [
        len(part.winners) if isinstance(part.winners, list) else part.winners for part in parts
    ]
    for status in STATUSES:
        columns[str(status)] = [part.statuses.get(str(status), 0) for part in parts]
    arrays: dict[str, pa.Array[Any]] = {
        name: optional_numbers(values, ANNOUNCEMENTS.field(name).type)
        for name, values in columns.items()
    }
    arrays["group"] = optional_names([group.name if group else None for _, group in rows])
    announced = [pair for part in parts for pair in part.announced.items()]
    ends = np.cumsum([0, *(len(part.announced) for part in parts)])
    offsets: Any = numbers(ends, pa.int32())
    arrays["announced"] = pa.MapArray.from_arrays(
        offsets,
        strings([name for name, _ in announced]),
        numbers([value for _, value in announced], pa.float64()),
    )
    return _table(arrays, ANNOUNCEMENTS)


def _announcements(settle: Settle) -> Iterator[tuple[Settle, GroupOutcome | None]]:
    """The market, unless it is one group's own; then its groups."""
    if settle.markets == 1:
        yield settle, None
    for group in settle.groups:
        yield settle, group


def _actions_table(columns: RoundColumns, rows: slice, key: Round) -> pa.Table:
    n = rows.stop - rows.start
    statuses = columns.statuses[rows]
    arrays = {
        "session": numbers(np.full(n, key.session), pa.int32()),
        "round": numbers(np.full(n, key.round), pa.int32()),
        "agent": numbers(columns.agents[rows], pa.uint32()),
        "group": (
            pa.nulls(n, ACTIONS.field("group").type)
            if columns.groups is None
            else coded(columns.groups[rows], columns.group_names)
        ),
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
