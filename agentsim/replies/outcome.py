"""What one part of a reply says, before parts are put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentsim.replies.rule import Rule
from agentsim.replies.status import Reading, Status


@dataclass(frozen=True, slots=True)
class Outcome:
    """A reading that keeps the number also where it lies outside the range.

    Attributes:
        status: as in a reading.
        number: the number of `ok` and `out_of_range`, else None.
        reason: as in a reading.
    """

    status: Status
    number: float | None
    reason: str

    def reading(self) -> Reading:
        """The reading: a value only where it is one."""
        return Reading(self.status, self.number if self.status is Status.OK else None, self.reason)


def of_number(number: float, rule: Rule, reason: str) -> Outcome:
    """The outcome of an answer that is this number. Negative zero is zero."""
    if number != number:
        return Outcome(Status.NO_ANSWER, None, "not a number")
    if not rule.contains(number) or number in {float("inf"), float("-inf")}:
        return Outcome(Status.OUT_OF_RANGE, number, "the answer is outside the range")
    return Outcome(Status.OK, number + 0.0, reason)


def ambiguous(reason: str) -> Outcome:
    """Two readers may differ."""
    return Outcome(Status.AMBIGUOUS, None, reason)


def no_answer(reason: str) -> Outcome:
    """No number is given as the answer."""
    return Outcome(Status.NO_ANSWER, None, reason)


def truncated(reason: str) -> Outcome:
    """The end is missing."""
    return Outcome(Status.TRUNCATED, None, reason)


def agree(outcomes: Sequence[Outcome]) -> Outcome:
    """What several parts that each claim to be the answer say together.

    They must all be the same number; a part without one among parts with one is a contradiction.
    """
    statuses = {outcome.status for outcome in outcomes}
    numbers = {outcome.number for outcome in outcomes if outcome.number is not None}
    if not outcomes:
        return no_answer("there is no answer field")
    if len(numbers) > 1:
        return ambiguous("the answer is given with different numbers")
    if len(statuses) > 1:
        unclear = statuses - {Status.OK, Status.OUT_OF_RANGE}
        return ambiguous(
            "the answer is given more than once, not always clearly" if unclear else ""
        )
    return outcomes[0]
