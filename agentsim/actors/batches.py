"""Messages in envelopes of a bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from agentsim.actors.messages import (
    ActorMessage,
    Call,
    CallMany,
    Create,
    Done,
    DoneMany,
    RemoteError,
    Value,
)

# A message that is larger by itself, up to `codec.MAX_BYTES`, has an envelope of its own.
BATCH_BYTES = 1024 * 1024
_HEADER_BYTES = 64


def batches(messages: Iterable[ActorMessage]) -> Iterator[list[ActorMessage]]:
    """The messages in order, in lists that an envelope holds."""
    batch: list[ActorMessage] = []
    total = 0
    for message in messages:
        of = _SIZES.get(type(message))
        size = _HEADER_BYTES if of is None else _HEADER_BYTES + of(message)
        total += size
        if total > BATCH_BYTES and batch:
            yield batch
            batch, total = [], size
        batch.append(message)
    if batch:
        yield batch


def error_size(error: RemoteError | None) -> int:
    """Bytes of an error, about."""
    return 0 if error is None else 2 * len(error.message) + 2 * len(error.traceback)


def _call(message: Call | CallMany) -> int:
    return len(message.arguments) + 16 * (len(message.needs) + len(message.chain))


def _result(message: Done | Value) -> int:
    return len(message.value or b"") + error_size(message.error)


def _results(message: DoneMany) -> int:
    values = len(message.plain or b"") + sum(map(len, message.values or ()))
    errors = sum(map(error_size, message.errors.values()))
    return 2 * len(message.offsets) + values + errors


def _making(message: Create) -> int:
    return sum(map(len, message.arguments))


_SIZES: Final[dict[type, Callable[[Any], int]]] = {
    Call: _call,
    CallMany: _call,
    Done: _result,
    Value: _result,
    DoneMany: _results,
    Create: _making,
}
