"""How much one endpoint is given: limit, pauses and whether it is left alone. Pure.

Time comes in as an argument, so that every state can be reached without waiting.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum

_MASK = 2**64 - 1


class Verdict(Enum):
    """How one HTTP request ended, as far as the endpoint's health is concerned."""

    OK = "ok"
    """It answered; also with an error that is the request's own fault."""
    OVERLOADED = "overloaded"
    """429 or 503: it wants less."""
    FAILED = "failed"
    """No answer, another 5xx, or an answer that cannot be read."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Pauses and bounds of trying again.

    Attributes:
        first_pause_s: before the second try; doubles with each further one.
        longest_pause_s: no pause is longer, not even one that a server asks for.
        leave_after: failures in a row after which an endpoint is left for a while.
        leave_after_overloads: rounds of overload in a row, with no success between them, after
            which an endpoint counts as failed.
        leave_s: how long it is left the first time; doubles each time it is still down.
        connect_timeout_s: for the connection alone.
    """

    first_pause_s: float = 0.5
    longest_pause_s: float = 60.0
    leave_after: int = 5
    leave_after_overloads: int = 10
    leave_s: float = 2.0
    connect_timeout_s: float = 10.0

    def pause_s(self, tries: int, jitter: float) -> float:
        """Pause after so many tries in a row: exponential, times `jitter` in [0.5, 1)."""
        return min(self.longest_pause_s, self.first_pause_s * 2.0 ** min(tries - 1, 30)) * jitter


@dataclass(slots=True)
class EndpointHealth:
    """State of one endpoint. The limit is halved on overload and creeps up on success.

    Every request takes a ticket when it is sent. An overload counts once for all requests that
    were in flight together: only a ticket taken after the last change can lower the limit again.

    Attributes:
        ceiling: most requests in flight, at least 1.
        policy: pauses and bounds.
        limit: requests in flight at present, 1 to `ceiling`.
        in_flight: requests that were sent and have not ended.
        paused_until: nothing is sent before, though the endpoint is alive.
        left_until: the endpoint is left alone until then; None while it is trusted.
    """

    ceiling: int
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    limit: float = 0.0
    in_flight: int = 0
    paused_until: float = -math.inf
    left_until: float | None = None
    _sent: int = 0
    _lowered_at: int = 0
    _overloads: int = 0
    _failures: int = 0
    _times_left: int = 0

    def __post_init__(self) -> None:
        self.limit = float(self.ceiling)

    @property
    def trusted(self) -> bool:
        """Whether the endpoint is in ordinary use."""
        return self.left_until is None

    def usable(self, now: float) -> bool:
        """Whether a request may be routed here; after a leave one is let through as a trial."""
        return self.left_until is None or now >= self.left_until

    def capacity(self, now: float) -> int:
        """How many more requests may be sent now."""
        if now < self.paused_until or not self.usable(now):
            return 0
        return (int(self.limit) if self.left_until is None else 1) - self.in_flight

    def send(self) -> int:
        """Counts a request as sent; returns its ticket."""
        self.in_flight += 1
        self._sent += 1
        return self._sent

    def forget(self) -> None:
        """The request was cancelled: it frees its place and says nothing about the endpoint."""
        self.in_flight -= 1

    def end(
        self, ticket: int, verdict: Verdict, now: float, *, pause_s: float | None, jitter: float
    ) -> None:
        """Takes note of how a request ended.

        Args:
            ticket: from `send`.
            verdict: how it ended.
            now: monotonic seconds.
            pause_s: what the server asked for, if it did.
            jitter: in [0.5, 1), for pauses of our own choice.
        """
        self.in_flight -= 1
        if verdict is Verdict.OK:
            self._succeed(ticket)
        elif verdict is Verdict.OVERLOADED:
            self._overload(ticket, now, pause_s, jitter)
        else:
            self._fail(now, self.policy.leave_after)

    def _succeed(self, ticket: int) -> None:
        self._failures = 0
        if ticket > self._lowered_at:
            self._overloads = 0
        self.left_until = None
        self._times_left = 0
        self.limit = min(float(self.ceiling), self.limit + 1.0 / self.limit)

    def _overload(self, ticket: int, now: float, pause_s: float | None, jitter: float) -> None:
        if ticket > self._lowered_at:
            self._lowered_at = self._sent
            self._overloads += 1
            self.limit = max(1.0, self.limit / 2.0)
        if pause_s is None:
            pause_s = self.policy.pause_s(self._overloads, jitter)
        pause_s = min(pause_s, self.policy.longest_pause_s)
        self.paused_until = max(self.paused_until, now + pause_s)
        if self._overloads >= self.policy.leave_after_overloads:
            self._fail(now, 1)

    def _fail(self, now: float, leave_after: int) -> None:
        self._failures += 1
        on_trial = self.left_until is not None and now >= self.left_until
        if self.left_until is None and self._failures < leave_after:
            return
        if self.left_until is None or on_trial:
            leave_s = self.policy.leave_s * 2.0 ** min(self._times_left, 30)
            self.left_until = now + min(leave_s, self.policy.longest_pause_s)
            self._times_left += 1

    def leave(self, now: float) -> None:
        """Leaves the endpoint at once, e.g. because it could not be reached at the start."""
        self._fail(now, 1)


class TokenRate:
    """Tokens a second over the last few seconds, in buckets of one second."""

    def __init__(self, window_s: int = 10) -> None:
        self._window_s = window_s
        self._buckets: deque[tuple[int, int]] = deque()

    def add(self, tokens: int, now: float) -> None:
        """Counts tokens that came in now."""
        second = int(now)
        if self._buckets and self._buckets[-1][0] == second:
            tokens += self._buckets.pop()[1]
        self._buckets.append((second, tokens))
        self._drop(second)

    def per_s(self, now: float) -> float:
        """Mean over the window that ends now."""
        self._drop(int(now))
        return sum(tokens for _, tokens in self._buckets) / self._window_s

    def _drop(self, second: int) -> None:
        while self._buckets and self._buckets[0][0] <= second - self._window_s:
            self._buckets.popleft()


def retry_after_s(header: str | None, wall: float) -> float | None:
    """Seconds that a `Retry-After` header asks for; None when there is none that can be read.

    Args:
        header: seconds, or an HTTP date.
        wall: seconds since the epoch, to compare a date with.
    """
    if header is None:
        return None
    header = header.strip()
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except (ValueError, TypeError, OverflowError):
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        seconds = (date - datetime.fromtimestamp(wall, UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def mix(*words: int) -> int:
    """A 64-bit number that depends on every bit of the words (splitmix64 steps)."""
    state = 0
    for word in words:
        state = (state + word + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


def jitter_of(*words: int) -> float:
    """A factor in [0.5, 1) that is a function of the words."""
    return 0.5 + (mix(*words) >> 11) * 2.0**-54
