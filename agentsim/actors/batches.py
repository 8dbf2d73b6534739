"""Messages in envelopes of a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
        size = _size(message)
        if batch and total + size > BATCH_BYTES:
            yield batch
            batch, total = [], 0
        batch.append(message)
        total += size
    if batch:
        yield batch


def error_size(error: RemoteError | None) -> int:
    """Bytes of an error, about."""
    return 0 if error is None else 2 * len(error.message) + 2 * len(error.traceback)


def _size(message: ActorMessage) -> int:
    """Bytes of a message, about."""
    match message:
        case Done() | Value():
            return _HEADER_BYTES + len(message.value or b"") + error_size(message.error)
        case Call() | CallMany():
            references = 16 * (len(message.needs) + len(message.chain))
            return _HEADER_BYTES + len(message.arguments) + references
        case Create():
            return _HEADER_BYTES + sum(map(len, message.arguments))
        case DoneMany():
            values = message.floats or b"".join(message.values or ())
            errors = sum(map(error_size, message.errors.values()))
            return _HEADER_BYTES + 2 * len(message.offsets) + len(values) + errors
        case _:
            return _HEADER_BYTES
