"""What two runs differ in, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_BEFORE = 24
_AFTER = 40
_WHOLE = _BEFORE + _AFTER


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not the same.

    Attributes:
        what: a field or column, e.g. `model.temperature`, `status`.
        left, right: what stands there, or the part of a long text around the first difference;
            empty where nothing does.
        place: of a row, e.g. `session 1, round 2, agent 7`; empty for what is of the whole run.
        where: of a row, its key, e.g. `{session: 1, round: 2, agent: 7}`.
        at: the first character that differs in a long text, from 1; else None.
    """

    what: str
    left: str
    right: str
    place: str = ""
    where: Mapping[str, Any] | None = None
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """One of the steps from the files to the results.

    Attributes:
        name: files, versions, personas, prompts, replies, reading or results.
        compared: how many fields or rows both have; None where neither has any.
        differ: how many of them are not the same.
        only_left, only_right: how many one has alone.
        first: the first difference of each field that differs, the earliest row first.
        counts: for each column, how many rows differ in it.
    """

    name: str
    compared: int | None
    differ: int = 0
    only_left: int = 0
    only_right: int = 0
    first: tuple[Difference, ...] = ()
    counts: Mapping[str, int] | None = None

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not (self.differ or self.only_left or self.only_right)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"equal": self.equal, **asdict(self)}


def of_values(what: str, left: Any, right: Any, place: str = "", **where: Any) -> Difference:
    """The difference of two values; of texts, what is around their first difference."""
    if isinstance(left, str) and isinstance(right, str) and max(len(left), len(right)) > _WHOLE:
        at = _first_difference(left, right)
        return Difference(
            what, _around(left, at), _around(right, at), place, where or None, at=at + 1
        )
    return Difference(what, shown(left), shown(right), place, where or None)


def _first_difference(left: str, right: str) -> int:
    shorter = min(len(left), len(right))
    low, high = 0, shorter
    while low < high:  # the longest beginning that both have
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _around(text: str, at: int) -> str:
    start = max(0, at - _BEFORE)
    end = at + _AFTER
    if start <= 1:
        start = 0
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def shown(value: Any) -> str:
    """A value in one short line; nothing for what is not there."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value) if isinstance(value, float) else str(value)
    return text if len(text) <= _WHOLE else f"{text[:_WHOLE]}…"
