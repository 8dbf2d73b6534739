"""What the parts of the codec share: marks, limits and the two errors."""

from __future__ import annotations

from enum import IntEnum
from types import NoneType
from typing import Final

from msgspec.msgpack import Ext

from agentsim.errors import UserError
from agentsim.rpc.envelope import WireError

MAX_BYTES: Final = 64 * 2**20
"""Most bytes of one encoded value."""

MAX_DEPTH: Final = 200
"""Most containers inside each other."""

MAX_INT_BYTES: Final = 64 * 2**10
"""Most bytes of one integer."""

PLAIN: Final[frozenset[type]] = frozenset({NoneType, bool, int, float, str, bytes})
"""Types that MessagePack keeps as they are."""

NUMBERS: Final[frozenset[type]] = frozenset({NoneType, bool, float})
"""Those that take a few bytes, whatever their value."""

SURE: Final[frozenset[type]] = PLAIN - {int, str}
"""Those of which every value can be written: an int may be too long, a str have a surrogate."""


class Kind(IntEnum):
    """What a marked list is. The numbers are MessagePack extension codes, so they never change."""

    TABLES = 1  # [mark, classes, references, value]: only as the outermost list
    TUPLE = 2  # [mark, *items]
    SET = 3
    FROZENSET = 4
    DICT = 5  # [mark, key, value, key, value, …]: a dict with keys that are not plain
    OBJECT = 6  # [mark, index of the class, *values of its fields]
    MEMBER = 7  # [mark, index of the class, name or flags of the member]
    REFERENCE = 8  # [mark, index of the reference]
    ARRAY = 9  # [mark, dtype, shape, data]
    SCALAR = 10  # [mark, dtype, data]
    DATA = 11  # no list: bytes that are read without a copy
    SIMPLE = 12  # [mark, name of the type, *parts]


class Mark:
    """First item of a list that stands for something else; `code` is the number of its kind.

    A plain int, for the hash of an enum's member is Python code, and slow.
    """

    __slots__ = ("code",)

    def __init__(self, kind: Kind) -> None:
        self.code = kind.value


MARKS: Final[dict[int, Mark]] = {kind.value: Mark(kind) for kind in Kind if kind is not Kind.DATA}
DATA_CODE: Final[int] = Kind.DATA.value


def mark(kind: Kind) -> Ext:
    """A mark, to be written."""
    return Ext(kind.value, b"")


def extension(code: int, data: memoryview) -> Mark | memoryview:
    """What stands for a MessagePack extension while a value is read.

    Raises:
        BadValue: nobody writes such an extension.
    """
    if code == DATA_CODE:
        return data
    found = MARKS.get(code)
    if found is None or len(data):
        raise BadValue(f"extension {code} with {len(data)} bytes has no meaning")
    return found


class CannotTravel(UserError):
    """A value cannot be sent to another program. The message names its place in the argument."""


class BadValue(WireError):
    """Bytes that are no value which this run can read: damaged, hostile, or of another version."""


class Refused(Exception):
    """Why a value cannot travel, on its way up to where its place is known.

    Attributes:
        reason: a predicate, e.g. `is a function; pass its name`.
        trail: steps from the value up to the argument, innermost first.
        holders: ids of the containers along the trail.
        deep: whether the depth is the reason, so that a cycle may be behind it.
    """

    def __init__(self, reason: str, *, deep: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.deep = deep
        self.trail: list[str] = []
        self.holders: list[int] = []

    def up(self, step: str, holder: object) -> Refused:
        """The same, seen from the container that holds the value."""
        self.trail.append(step)
        self.holders.append(id(holder))
        return self


KEY: Final = "a key"
ELEMENT: Final = "an element"
"""Steps into what has no name of its own."""


def place(trail: list[str]) -> str:
    """Where a value is, from the trail in order: `.steps[3].callback`, `[0] of a key of .table`."""
    outer = ""
    inner: list[str] = []
    for step in trail:
        if step in (KEY, ELEMENT):
            held = "".join(inner)
            outer = " of ".join(part for part in (step, held, outer) if part)
            inner = []
        else:
            inner.append(step)
    return " of ".join(part for part in ("".join(inner), outer) if part)


def explained(refused: Refused, path: str) -> CannotTravel:
    """The error that the user reads."""
    trail, holders = refused.trail[::-1], refused.holders[::-1]
    reason = refused.reason
    if refused.deep:
        seen: dict[int, int] = {}
        for depth, holder in enumerate(holders):
            if holder in seen:
                above = place(trail[: seen[holder]]) or path or "the value itself"
                trail = trail[:depth]
                reason = f"leads back to {above}; a value must not contain itself"
                break
            seen[holder] = depth
        else:
            trail = []
    where = place(trail)
    if not where:
        return CannotTravel(f"{path or 'the value'} {reason}")
    return CannotTravel(f"{path}: {where} {reason}" if path else f"{where} {reason}")
