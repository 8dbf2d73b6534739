"""One worker's part of a group call, at the caller."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentsim.actors.messages import DoneMany, RemoteError
from agentsim.actors.placeholder import CallCancelled, GroupPlaceholder, Placeholder, failure_of
from agentsim.errors import AgentsimError, RunError

_log = logging.getLogger(__name__)


class Part:
    """The calls of a group that one worker carries out.

    Args:
        placeholder: of the whole group; kept weakly, since nobody may want the results.
        start: the first agent.
        count: how many.
        worker: which.
        pins: placeholders that stand in the arguments, kept until all calls have ended.
        parent: the call that made this one; 0 for the user's program.
    """

    __slots__ = ("count", "left", "parent", "pins", "placeholder", "start", "worker")

    def __init__(
        self,
        placeholder: GroupPlaceholder,
        start: int,
        count: int,
        worker: int,
        pins: Sequence[Placeholder],
        parent: int,
    ) -> None:
        self.placeholder = weakref.ref(placeholder)
        self.start = start
        self.count = count
        self.left = count
        self.worker = worker
        self.pins = pins
        self.parent = parent

    def take(self, message: DoneMany, decode: Callable[[bytes], Any]) -> None:
        """Some calls have ended.

        Raises:
            ValueError, RunError: the message does not hold together.
        """
        column = np.frombuffer(message.offsets, dtype="<u4")
        if column.size > self.left or (column.size and column.max() >= self.count):
            raise ValueError(f"{column.size} results came for {self.left} of {self.count} calls")
        offsets = _row(column)
        placeholder = self.placeholder()
        if placeholder is None:
            self.left -= len(offsets)
            _note_unread(message.errors)
            return
        if message.plain is not None:
            values: Any = decode(message.plain)
        else:
            values = self._decoded(offsets, message.values or [], decode, placeholder)
        if type(values) is not list or len(offsets) != len(values):
            raise ValueError(f"results came that are none of {len(offsets)} calls")
        self.left -= len(offsets)
        for offset, error in message.errors.items():
            if offset < self.count:
                placeholder._fail(self.start + offset, failure_of(error))
        placeholder._take(self.start, offsets, values)
        placeholder._wake()

    def fail(self, error: AgentsimError) -> None:
        """All calls that have not ended fail."""
        placeholder = self.placeholder()
        if placeholder is not None:
            for agent in range(self.start, self.start + self.count):
                placeholder._fail(agent, error)
            placeholder._wake()

    def _decoded(
        self,
        offsets: Sequence[int],
        bodies: Sequence[bytes],
        decode: Callable[[bytes], Any],
        placeholder: GroupPlaceholder,
    ) -> list[Any]:
        try:
            return [decode(body) for body in bodies]
        except RunError:
            pass  # one of them cannot be read; see which
        values: list[Any] = []
        for offset, body in zip(offsets, bodies, strict=False):
            try:
                values.append(decode(body))
            except RunError as error:
                placeholder._fail(self.start + offset, error)
                values.append(None)
        return values


def _row(offsets: NDArray[np.uint32]) -> range | list[int]:
    """Offsets as plain numbers: a range where they follow each other, as they mostly do."""
    if offsets.size > 1 and bool((np.diff(offsets) == 1).all()):
        return range(int(offsets[0]), int(offsets[-1]) + 1)
    found: list[int] = offsets.tolist()
    return found


def _note_unread(errors: dict[int, RemoteError]) -> None:
    for error in errors.values():
        if error.type != CallCancelled.__name__:
            _log.warning("a call whose result nobody reads failed: %s", error.message)
