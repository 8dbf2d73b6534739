"""How threads wait for what the loop's thread brings."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext


class Bell:
    """Threads wait for a condition; it is looked at again whenever the bell rings.

    Args:
        waiting: entered while a thread waits.
    """

    def __init__(self, waiting: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._waiting = waiting
        self._changed = threading.Condition()
        self._interrupted: BaseException | None = None

    def ring(self) -> None:
        """Something has changed; from any thread."""
        with self._changed:
            self._changed.notify_all()

    def interrupt(self, error: BaseException) -> None:
        """Raise in every thread that waits, now and from now on; from any thread."""
        self._interrupted = error
        self.ring()

    def wait(self, condition: Callable[[], bool], timeout_s: float | None) -> None:
        """Wait until the condition holds.

        Raises:
            TimeoutError: it does not hold in time.
            BaseException: what `interrupt` was given.
        """
        with self._waiting(), self._changed:
            ended = self._changed.wait_for(
                lambda: self._interrupted is not None or condition(), timeout_s
            )
        if self._interrupted is not None:
            raise self._interrupted
        if not ended:
            raise TimeoutError(f"no result within {timeout_s:g} s")
