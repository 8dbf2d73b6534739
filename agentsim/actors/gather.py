"""Results of one group call at one worker, on their way back in batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from agentsim.actors.batches import BATCH_BYTES, error_size
from agentsim.actors.codec import CannotTravel, Codec
from agentsim.actors.faults import remote_error
from agentsim.actors.messages import CallMany, DoneMany, RemoteError
from agentsim.actors.outcomes import encode_result
from agentsim.actors.wire import PLAIN

# A message of results is sent at the latest when it has gathered this many.
_BATCH = 10_000
# Results that come one by one travel together, if the last message left this short a time ago: a
# message costs far more than a result in it.
_PAUSE_S = 0.01


class Gather:
    """Takes results one by one and sends them together.

    Args:
        call: the group call.
        send: sends a message to whoever made it.
        codec: of values.
        where: worker and host, for error messages.

    Attributes:
        call: the group call.
        on_end: called when all calls have ended.
    """

    __slots__ = (
        "_bytes",
        "_codec",
        "_errors",
        "_last_s",
        "_left",
        "_loop",
        "_offsets",
        "_scheduled",
        "_send",
        "_values",
        "_where",
        "call",
        "on_end",
    )

    def __init__(
        self,
        call: CallMany,
        send: Callable[[DoneMany], None],
        codec: Codec,
        where: str,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.on_end: Callable[[], None] | None = None
        self._left = call.count
        self.call = call
        self._send = send
        self._codec = codec
        self._where = where
        self._loop = loop
        self._offsets: list[int] = []
        # Plain values as they are, others as bytes in a list: the agent may go on changing them.
        self._values: list[Any] = []
        self._errors: dict[int, RemoteError] = {}
        self._bytes = 0
        self._scheduled = False
        self._last_s = 0.0

    @property
    def ended(self) -> bool:
        """Whether all calls have ended."""
        return not self._left

    def value(self, offset: int, value: Any) -> None:
        """A call has a result."""
        kind = type(value)
        if kind is str or kind is bytes:
            self._make_room(len(value))
        elif kind not in PLAIN:
            try:
                value = [encode_result(self._codec, value)]
            except CannotTravel as error:
                self.error(offset, remote_error(error, self._where))
                return
            self._make_room(len(value[0]))
        self._add(offset, value)

    def numbers(self, offsets: list[int], values: list[Any]) -> None:
        """Calls have results, all of them floats, truth values or None."""
        self._offsets += offsets
        self._values += values
        self._ended(len(offsets))

    def error(self, offset: int, error: RemoteError) -> None:
        """A call has failed."""
        self._make_room(error_size(error))
        self._errors[offset] = error
        self._add(offset, None)

    def _make_room(self, size: int) -> None:
        """Send what has gathered, if it is too much together with what comes."""
        if self._bytes + size > BATCH_BYTES:
            self._flush()
        self._bytes += size

    def _add(self, offset: int, value: Any) -> None:
        self._offsets.append(offset)
        self._values.append(value)
        self._ended(1)

    def _ended(self, count: int) -> None:
        self._left -= count
        if not self._left:
            self._loop.call_soon(self._flush)
            if self.on_end is not None:
                self.on_end()
        elif not self._scheduled:
            self._scheduled = True
            pause_s = self._last_s + _PAUSE_S - self._loop.time()
            if pause_s > 0:
                self._loop.call_later(pause_s, self._flush_later)
            else:
                self._loop.call_soon(self._flush_later)
        elif len(self._offsets) >= _BATCH:
            self._flush()

    def _flush_later(self) -> None:
        self._scheduled = False
        self._last_s = self._loop.time()
        self._flush()

    def _flush(self) -> None:
        offsets, values, errors = self._offsets, self._values, self._errors
        if not offsets:
            return
        self._offsets, self._values, self._errors, self._bytes = [], [], {}, 0
        column = np.asarray(offsets, dtype="<u4").tobytes()
        if PLAIN.issuperset(map(type, values)):
            with contextlib.suppress(CannotTravel):  # which one cannot is seen below
                plain = self._codec.encode(values)
                self._send(DoneMany(self.call.id, column, plain, None, errors))
                return
        encoded = [
            self._encoded(offset, value, errors)
            for offset, value in zip(offsets, values, strict=True)
        ]
        self._send(DoneMany(self.call.id, column, None, encoded, errors))

    def _encoded(self, offset: int, value: Any, errors: dict[int, RemoteError]) -> bytes:
        if value is None:
            return b""
        if type(value) is list:
            body: bytes = value[0]
            return body
        try:
            return self._codec.encode(value, path="result")
        except CannotTravel as error:
            errors[offset] = remote_error(error, self._where)
            return b""
