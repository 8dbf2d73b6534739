"""Results of other calls that stand in arguments, on their way to this worker."""

from __future__ import annotations

from collections.abc import Callable

from agentsim.actors.messages import ActorMessage, Fetch
from agentsim.actors.refs import ResultRef


class Fetches:
    """Asks for each result once, however many calls wait for it.

    Args:
        number: of this worker.
        send: sends a message to a worker.
    """

    def __init__(self, number: int, send: Callable[[int, ActorMessage], None]) -> None:
        self._number = number
        self._send = send
        self._waiting: dict[int, tuple[int, list[int]]] = {}

    def ask(self, need: ResultRef, call: int) -> None:
        """A call waits for a result."""
        _, calls = self._waiting.setdefault(need.call, (need.worker, []))
        calls.append(call)
        if len(calls) == 1:
            self._send(need.worker, Fetch(need.call, self._number))

    def come(self, result: int) -> list[int]:
        """A result is here: the calls that wait for it."""
        return self._waiting.pop(result, (0, []))[1]

    def of(self, worker: int) -> list[int]:
        """Results that are to come from a worker."""
        return [result for result, (owner, _) in self._waiting.items() if owner == worker]
