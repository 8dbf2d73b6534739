"""Results of one group call at one worker, on their way back in batches."""

from __future__ import annotations

import asyncio
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


class Gather:
    """Takes results one by one and sends them together.

    Args:
        call: the group call.
        send: sends a message to whoever made it.
        codec: of values.
        where: worker and host, for error messages.
    """

    __slots__ = (
        "_bytes",
        "_codec",
        "_errors",
        "_id",
        "_loop",
        "_offsets",
        "_scheduled",
        "_send",
        "_values",
        "_where",
    )

    def __init__(
        self,
        call: CallMany,
        send: Callable[[DoneMany], None],
        codec: Codec,
        where: str,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._id = call.id
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

    def value(self, offset: int, value: Any) -> None:
        """A call has a result."""
        if type(value) not in PLAIN:
            try:
                value = [encode_result(self._codec, value)]
            except CannotTravel as error:
                self.error(offset, remote_error(error, self._where))
                return
            self._make_room(len(value[0]))
        elif type(value) in (str, bytes):
            self._make_room(len(value))
        self._offsets.append(offset)
        self._values.append(value)
        if not self._scheduled or len(self._offsets) >= _BATCH:
            self._later()

    def error(self, offset: int, error: RemoteError) -> None:
        """A call has failed."""
        self._make_room(error_size(error))
        self._errors[offset] = error
        self._offsets.append(offset)
        self._values.append(None)
        self._later()

    def _make_room(self, size: int) -> None:
        """Send what has gathered, if it is too much together with what comes."""
        if self._offsets and self._bytes + size > BATCH_BYTES:
            self._send_gathered()
        self._bytes += size

    def _later(self) -> None:
        if len(self._offsets) >= _BATCH:
            self._send_gathered()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if self._offsets:
            self._send_gathered()

    def _send_gathered(self) -> None:
        offsets, values, errors = self._offsets, self._values, self._errors
        self._offsets, self._values, self._errors, self._bytes = [], [], {}, 0
        column = np.asarray(offsets, dtype="<u4").tobytes()
        if not errors and all(type(value) is float for value in values):
            floats = np.asarray(values, dtype="<f8").tobytes()
            self._send(DoneMany(self._id, column, floats=floats))
            return
        encoded = [
            self._encoded(offset, value, errors)
            for offset, value in zip(offsets, values, strict=True)
        ]
        self._send(DoneMany(self._id, column, values=encoded, errors=errors))

    def _encoded(self, offset: int, value: Any, errors: dict[int, RemoteError]) -> bytes:
        if type(value) is list:
            body: bytes = value[0]
            return body
        try:
            return encode_result(self._codec, value)
        except CannotTravel as error:
            errors[offset] = remote_error(error, self._where)
            return b""
