"""Time in which this program could work: what silences and leases are measured in."""

from __future__ import annotations

import time
from collections.abc import Callable

_MOST_S = 2.0


class AwakeClock:
    """A monotonic clock that stands still while its program cannot run.

    A laptop that slept, a program that was stopped by a signal, an event loop that was held by
    work: each finds signs of life waiting that it had no chance to read. If that time counted, it
    would give up everybody at the moment it wakes. So a step counts as 2 s at most; whoever uses
    the clock reads it more often than that.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last_s = monotonic()
        self._awake_s = 0.0

    def now(self) -> float:
        """Seconds since the clock was made, without those in which nothing could run."""
        now_s = self._monotonic()
        self._awake_s += min(now_s - self._last_s, _MOST_S)
        self._last_s = now_s
        return self._awake_s
