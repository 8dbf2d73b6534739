"""The columns of the three tables. Files of older versions stay readable: append, never change."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from agentsim.replies import STATUSES

_NAMES = pa.dictionary(pa.int32(), pa.string())
_MESSAGE = pa.struct([pa.field("role", pa.string()), pa.field("content", pa.string())])


def _required(name: str, type: pa.DataType) -> pa.Field[Any]:
    return pa.field(name, type, nullable=False)


ACTIONS = pa.schema(
    [
        _required("session", pa.int32()),
        _required("round", pa.int32()),
        _required("agent", pa.uint32()),
        pa.field("group", _NAMES),
        _required("status", _NAMES),
        pa.field("value", pa.float64()),
        _required("won", pa.bool_()),
        _required("payoff", pa.float64()),
        _required("attempts", pa.int16()),
        pa.field("text", pa.string()),
        pa.field("prompt_tokens", pa.int32()),
        pa.field("completion_tokens", pa.int32()),
        pa.field("latency_s", pa.float32()),
        _required("model", _NAMES),
    ]
)
"""One row for each (session, round, agent). `value` is null unless `status` is ok; tokens and
latency are sums over the action's attempts, null for scripted players, as is `text`, the deciding
reply. `group` is null where there are no groups."""

REQUESTS = pa.schema(
    [
        _required("session", pa.int32()),
        _required("round", pa.int32()),
        _required("agent", pa.uint32()),
        _required("step", pa.int32()),
        _required("attempt", pa.int32()),
        _required("messages", pa.list_(_MESSAGE)),
        _required("format", _NAMES),
        _required("seed", pa.uint64()),
        _required("text", pa.string()),
        _required("finish_reason", _NAMES),
        _required("status", _NAMES),
        pa.field("value", pa.float64()),
        _required("reason", pa.string()),
        _required("final", pa.bool_()),
        _required("error", pa.string()),
        _required("prompt_tokens", pa.int32()),
        _required("completion_tokens", pa.int32()),
        _required("latency_s", pa.float32()),
        _required("tries", pa.int32()),
        _required("endpoint", _NAMES),
        _required("request_id", pa.string()),
        _required("choice", pa.int32()),
        _required("worker", pa.int32()),
    ]
)
"""One row for each attempt of a language model, in order of arrival. `step` and `attempt` count
from 0."""

ANNOUNCEMENTS = pa.schema(
    [
        _required("session", pa.int32()),
        _required("round", pa.int32()),
        _required("n", pa.int32()),
        pa.field("target", pa.float64()),
        pa.field("mean", pa.float64()),
        pa.field("median", pa.float64()),
        pa.field("winning_guess", pa.float64()),
        _required("winners", pa.int32()),
        *(_required(str(status), pa.int32()) for status in STATUSES),
        _required("announced", pa.map_(pa.string(), pa.float64())),
        _required("wall_s", pa.float64()),
        pa.field("group", _NAMES),
    ]
)
"""One row for each (session, round). `winners` counts them; the columns named after a status count
the final actions that have it; `announced` is what the next round's players were told. Where there
are groups, there is a row for each, with its own `n`, `mean`, `median`, `winners` and statuses, and
the `target` and `winning_guess` of its market. `group` is null in the row of the whole session,
which is there unless the groups are markets of their own."""

SCHEMAS = {"actions": ACTIONS, "requests": REQUESTS, "announcements": ANNOUNCEMENTS}
"""By table name."""
