"""Results of the calls that one worker has carried out, kept until nobody can ask for them."""

from __future__ import annotations

from collections.abc import Callable

from agentsim.actors.messages import ActorMessage, Done, RemoteError, Value, caller_of

# Results up to this size travel with the news that they are there; larger ones when asked for.
_INLINE_BYTES = 64 * 1024


class Outcomes:
    """Keeps results.

    Args:
        send: sends a message to a worker or the centre.
    """

    def __init__(self, send: Callable[[int, ActorMessage], None]) -> None:
        self._send = send
        self._kept: dict[int, Value] = {}
        self._under_way: set[int] = set()
        self._unwanted: set[int] = set()
        self._asked: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def begin(self, id: int) -> None:
        """A call has arrived."""
        self._under_way.add(id)

    def end(self, id: int, value: bytes | None, error: RemoteError | None) -> None:
        """A call has ended: tell its caller, and give the result to those who asked for it."""
        self._under_way.discard(id)
        result = Value(id, value, error)
        if id in self._unwanted:
            self._unwanted.discard(id)
        else:
            self._kept[id] = result
        inline = value is None or len(value) <= _INLINE_BYTES
        self._send(caller_of(id), Done(id, value if inline else None, error))
        for to in self._asked.pop(id, ()):
            self._send(to, result)

    def ask(self, id: int, to: int) -> None:
        """Send a result, now or when it is there.

        A result that is asked for is pinned by its caller, so a call that is not known here has
        not arrived yet: the question came by a shorter way.
        """
        if id in self._kept:
            self._send(to, self._kept[id])
        else:
            self._asked.setdefault(id, []).append(to)

    def release(self, ids: list[int]) -> None:
        """Nobody will ask for these results any more."""
        for id in ids:
            if self._kept.pop(id, None) is None and id in self._under_way:
                self._unwanted.add(id)
