"""Classes that stand for a user's module: what travels, and what does not."""

from __future__ import annotations

import enum
from collections import OrderedDict
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from subprocess import Popen
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec

__all__ = ["Popen"]  # a class of another module, by a name of this one

T = TypeVar("T")
ran: list[str] = []
"""What ran of these classes."""


@dataclass
class Step:
    name: str
    callback: Any = None


@dataclass
class Plan:
    steps: list[Step] = field(default_factory=list)
    owner: str = "nobody"
    total: int = field(init=False, default=0)
    kind: ClassVar[str] = "plan"


@dataclass(frozen=True, slots=True, order=True)
class Point:
    x: float
    y: float = 0.0


@dataclass(kw_only=True)
class Child(Plan):
    age: int

    @cached_property
    def twice(self) -> int:
        return 2 * self.age


@dataclass
class Doubled:
    x: int
    times: InitVar[int] = 2

    def __post_init__(self, times: int) -> None:
        ran.append("Doubled")
        self.x *= times


@dataclass
class Box(Generic[T]):
    inside: T


@dataclass
class Nothing:
    pass


@dataclass
class Secretive:
    x: int

    def __post_init__(self) -> None:
        self._cache = {self.x: 1}


@dataclass
class Rows(list):  # type: ignore[type-arg]
    name: str = ""


@dataclass
class Failing(Exception):
    code: int = 0


@dataclass(slots=True)
class Unset:
    x: int = field(init=False)


@dataclass
class Watched:
    x: int

    def _get(self) -> int:
        return 1

    def _set(self, value: int) -> None:
        ran.append("Watched")


Watched.x = property(Watched._get, Watched._set)  # type: ignore[assignment]


@dataclass(frozen=True)
class Sneaky:
    x: int

    def __hash__(self) -> int:
        raise SystemError("the hash of a user's class fails")

    def __reduce__(self) -> Any:
        ran.append("__reduce__")
        return super().__reduce__()

    def __setstate__(self, state: Any) -> None:
        ran.append("__setstate__")


class Record(msgspec.Struct):
    x: int
    tags: list[str] = []
    later: int | msgspec.UnsetType = msgspec.UNSET


class Cell(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="cell"):
    row: int
    column: int = 0


class Tripled(msgspec.Struct):
    x: int

    def __post_init__(self) -> None:
        self.x *= 3


class Pair(NamedTuple):
    left: Any
    right: Any = None


class Color(enum.Enum):
    RED = 1
    ROT = 1  # noqa: PIE796 - an alias
    BLUE = (1, 2)


class Word(enum.StrEnum):
    YES = "yes"
    NO = "no"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Bits(enum.IntFlag):
    A = 1
    B = 8


class Outer:
    @dataclass
    class Inner:
        x: int


class Ordinary:
    def __init__(self) -> None:
        self.x = 1


class Mapping(OrderedDict):  # type: ignore[type-arg]
    pass


class Agent:
    def to_dist(self) -> None: ...


def make_local() -> Any:
    @dataclass
    class Local:
        x: int

    return Local(1)


Alias = Step
not_a_class = 3


class Meta(type):
    def __getattr__(cls, name: str) -> Any:
        ran.append(f"Meta.{name}")
        raise AttributeError(name)


class Strange(metaclass=Meta):
    pass


def __getattr__(name: str) -> Any:
    ran.append(f"module.{name}")
    raise AttributeError(name)
