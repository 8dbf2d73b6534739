"""What a reading of a reply can say."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """What became of one reply. Only `ok` comes with a value and counts in the results."""

    OK = "ok"
    """One number is the answer, and it lies in the game's range."""
    TRUNCATED = "truncated"
    """The reply was cut before its answer was complete."""
    EMPTY = "empty"
    """There is no text outside the thinking."""
    NO_ANSWER = "no_answer"
    """There is text, and it gives no number as the answer."""
    AMBIGUOUS = "ambiguous"
    """Two readers may take different numbers from it."""
    OUT_OF_RANGE = "out_of_range"
    """The answer is a number outside the game's range; it is never clipped."""
    FAILED = "failed"
    """There was no reply at all. Set by whoever asked, never by a reading."""


STATUSES: tuple[Status, ...] = tuple(Status)
"""Every status, in the order in which tables show them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from one reply.

    Attributes:
        status: what became of the reply.
        value: the answer in the game's own unit; None unless the status is `ok`.
        reason: why, in a few words, for people who look at single replies.
    """

    status: Status
    value: float | None
    reason: str
