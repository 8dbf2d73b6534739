"""Results of one group call at one worker, on their way back in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np

from agentsim.actors.codec import CannotTravel, Codec
from agentsim.actors.messages import CallMany, DoneMany, RemoteError

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
        "_codec",
        "_errors",
        "_id",
        "_loop",
        "_offsets",
        "_scheduled",
        "_send",
        "_values",
        "_where",
        "left",
    )

    def __init__(
        self,
        call: CallMany,
        send: Callable[[DoneMany], None],
        codec: Codec,
        where: str,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.left = call.count
        self._id = call.id
        self._send = send
        self._codec = codec
        self._where = where
        self._loop = loop
        self._offsets: list[int] = []
        self._values: list[Any] = []
        self._errors: dict[int, RemoteError] = {}
        self._scheduled = False

    def value(self, offset: int, value: Any) -> None:
        """A call has a result."""
        self._offsets.append(offset)
        self._values.append(value)
        self._later()

    def error(self, offset: int, error: RemoteError) -> None:
        """A call has failed."""
        self._errors[offset] = error
        self._offsets.append(offset)
        self._values.append(None)
        self._later()

    def _later(self) -> None:
        self.left -= 1
        if len(self._offsets) >= _BATCH:
            self._flush()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        offsets, values, errors = self._offsets, self._values, self._errors
        if not offsets:
            return
        self._offsets, self._values, self._errors = [], [], {}
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
        if value is None:
            return b""
        try:
            return self._codec.encode(value, path="result")
        except CannotTravel as error:
            errors[offset] = RemoteError(type(error).__name__, str(error), "", self._where)
            return b""
