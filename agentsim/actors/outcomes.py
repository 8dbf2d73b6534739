"""Results of the calls that one worker has carried out, kept until nobody can ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentsim.actors.codec import CannotTravel, Codec
from agentsim.actors.faults import gone
from agentsim.actors.messages import ActorMessage, Done, RemoteError, Value, caller_of
from agentsim.actors.wire import PLAIN

# Results up to this size travel with the news that they are there; larger ones when asked for.
_INLINE_BYTES = 64 * 1024


def encode_result(codec: Codec, value: Any) -> bytes:
    """A result as it travels; nothing stands for None.

    Raises:
        CannotTravel: it cannot be sent, or holds a placeholder, which only its owner keeps.
    """
    if value is None:
        return b""
    if type(value) in PLAIN:
        return codec.encode(value, path="result")
    body, needs = codec.encode_with_refs(value, path="result")
    if needs:
        raise CannotTravel(
            "the result holds a placeholder; `await` it before you return it, or return it alone"
        )
    return body


class Outcomes:
    """Keeps results.

    Args:
        send: sends a message to a worker or the centre.
    """

    def __init__(self, send: Callable[[int, ActorMessage], None]) -> None:
        self._send = send
        self._kept: dict[int, tuple[bytes | None, RemoteError | None]] = {}
        self._under_way: set[int] = set()
        self._unwanted: set[int] = set()
        self._asked: dict[int, list[int]] = {}
        # Caller → the highest number of its calls that have arrived. They arrive in order.
        self._seen: dict[int, int] = {}
        self._lost: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def begin(self, id: int) -> bool:
        """A call has arrived; False when there is one of that number."""
        if id in self._under_way or id in self._kept:
            return False
        self._under_way.add(id)
        caller = caller_of(id)
        if id > self._seen.get(caller, 0):
            self._seen[caller] = id
        if caller in self._lost:
            self._unwanted.add(id)
        return True

    def end(self, id: int, value: bytes | None, error: RemoteError | None) -> None:
        """A call has ended: tell its caller, and give the result to those who asked for it."""
        self._under_way.discard(id)
        if self._unwanted and id in self._unwanted:
            self._unwanted.discard(id)
        else:
            self._kept[id] = (value, error)
        inline = value is None or len(value) <= _INLINE_BYTES
        self._send(caller_of(id), Done(id, value if inline else None, error))
        if id in self._asked:
            for to in self._asked.pop(id):
                self._send(to, Value(id, value, error))

    def ask(self, id: int, to: int) -> None:
        """Send a result, now or when it is there.

        A result that is asked for is pinned by its caller. So a call that is not known here has not
        arrived yet, the question came by a shorter way; or it was released because the call that
        asks has ended meanwhile, by a cancel or an error.
        """
        if id in self._kept:
            self._send(to, Value(id, *self._kept[id]))
        elif id in self._under_way or self._is_to_come(id):
            self._asked.setdefault(id, []).append(to)
        else:
            self._send(to, Value(id, None, self._missing(id)))

    def release(self, ids: list[int]) -> None:
        """Nobody will ask for these results any more."""
        for id in ids:
            if self._kept.pop(id, None) is None and id in self._under_way:
                self._unwanted.add(id)

    def lose(self, worker: int, message: str) -> None:
        """A worker is gone: nobody will release what it has called for, and it asks for nothing."""
        self._lost[worker] = message
        for id in [id for id in self._kept if caller_of(id) == worker]:
            del self._kept[id]
        self._unwanted.update(id for id in self._under_way if caller_of(id) == worker)
        for id, askers in list(self._asked.items()):
            askers[:] = [to for to in askers if to != worker]
            if askers and id not in self._under_way and caller_of(id) == worker:
                for to in askers:
                    self._send(to, Value(id, None, gone(message)))
                askers.clear()
            if not askers:
                del self._asked[id]

    def _is_to_come(self, id: int) -> bool:
        caller = caller_of(id)
        return id > self._seen.get(caller, 0) and caller not in self._lost

    def _missing(self, id: int) -> RemoteError:
        message = self._lost.get(caller_of(id))
        if message is not None:
            return gone(message)
        return RemoteError("LookupError", "the result that was asked for is released", "", "")
