"""Small value types of the standard library, each as a few plain parts."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath
from types import NoneType
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from agentsim.actors.wire import MAX_INT_BYTES, BadValue, Refused

_ZONE_NAME = re.compile(r"[A-Za-z0-9_+-]{1,40}(?:/[A-Za-z0-9_+-]{1,40}){0,3}")
_ZONES: Final = (NoneType, dt.timezone, ZoneInfo)


@dataclass(frozen=True, slots=True)
class Simple:
    """How values of one type travel.

    Attributes:
        name: of the type, on the wire.
        of: exactly this type, no subclass.
        parts: takes a value apart.
        make: puts it together again.
        kinds: types that each part may have; a value may have fewer parts, never more.
    """

    name: str
    of: type
    parts: Callable[[Any], tuple[Any, ...]]
    make: Callable[..., Any]
    kinds: tuple[tuple[type, ...], ...]


def read_simple(name: object, parts: list[Any]) -> Any:
    """The value of the named type.

    Raises:
        BadValue: there is no such type, or the parts are none of it.
    """
    simple = BY_NAME.get(name) if type(name) is str else None
    if simple is None:
        raise BadValue("a value is of no type that travels")
    if len(parts) > len(simple.kinds):
        raise BadValue(f"a {simple.name} has {len(simple.kinds)} parts, not {len(parts)}")
    for part, kinds in zip(parts, simple.kinds, strict=False):
        if type(part) not in kinds:
            raise BadValue(f"a part of a {simple.name} is a {type(part).__name__}")
    try:
        return simple.make(*parts)
    except (ValueError, TypeError, ArithmeticError, LookupError, OSError) as error:
        raise BadValue(f"no {simple.name} has such parts: {error}") from error


def _integer_parts(value: int) -> tuple[bytes]:
    size = value.bit_length() // 8 + 1
    if size > MAX_INT_BYTES:
        raise Refused(f"is an integer of {size} bytes; at most {MAX_INT_BYTES} travel")
    return (value.to_bytes(size, "big", signed=True),)


def _integer(data: bytes) -> int:
    if len(data) > MAX_INT_BYTES:
        raise ValueError(f"{len(data)} bytes are too many")
    return int.from_bytes(data, "big", signed=True)


def _zone_of(value: dt.datetime | dt.time) -> dt.tzinfo | None:
    zone = value.tzinfo
    if type(zone) not in _ZONES:
        raise Refused(
            f"has a time zone of type {type(zone).__qualname__}; "
            "use datetime.timezone or zoneinfo.ZoneInfo"
        )
    return zone


def _datetime_parts(value: dt.datetime) -> tuple[Any, ...]:
    return (value.year, value.month, value.day, *_time_parts(value))


def _time_parts(value: dt.datetime | dt.time) -> tuple[Any, ...]:
    clock = (value.hour, value.minute, value.second, value.microsecond)
    return (*clock, value.fold, _zone_of(value))


def _timezone_parts(value: dt.timezone) -> tuple[Any, ...]:
    offset = value.utcoffset(None)
    name = value.tzname(None)
    return (offset,) if name == dt.timezone(offset).tzname(None) else (offset, name)


def _zone_parts(value: ZoneInfo) -> tuple[str]:
    if value.key is None or not _ZONE_NAME.fullmatch(value.key):
        raise Refused("is a time zone without a name of the time zone database")
    return (value.key,)


def _zone(key: str) -> ZoneInfo:
    if not _ZONE_NAME.fullmatch(key):
        raise ValueError("no time zone has such a name")
    return ZoneInfo(key)


def _fraction(numerator: int, denominator: int) -> Fraction:
    return Fraction(numerator, denominator)


_INT = (int,)
_STR = (str,)
_BYTES = (bytes,)

_SIMPLES = (
    Simple("int", int, _integer_parts, _integer, (_BYTES,)),
    Simple("complex", complex, lambda v: (v.real, v.imag), complex, ((float,),) * 2),
    Simple("bytearray", bytearray, lambda v: (bytes(v),), bytearray, (_BYTES,)),
    Simple("range", range, lambda v: (v.start, v.stop, v.step), range, (_INT,) * 3),
    Simple(
        "datetime",
        dt.datetime,
        _datetime_parts,
        lambda y, mo, d, h, mi, s, us, fold, zone: dt.datetime(
            y, mo, d, h, mi, s, us, zone, fold=fold
        ),
        ((_INT,) * 8 + (_ZONES,)),
    ),
    Simple("date", dt.date, lambda v: (v.year, v.month, v.day), dt.date, (_INT,) * 3),
    Simple(
        "time",
        dt.time,
        _time_parts,
        lambda h, mi, s, us, fold, zone: dt.time(h, mi, s, us, zone, fold=fold),
        ((_INT,) * 5 + (_ZONES,)),
    ),
    Simple(
        "timedelta",
        dt.timedelta,
        lambda v: (v.days, v.seconds, v.microseconds),
        dt.timedelta,
        (_INT,) * 3,
    ),
    Simple("timezone", dt.timezone, _timezone_parts, dt.timezone, ((dt.timedelta,), _STR)),
    Simple("zone", ZoneInfo, _zone_parts, _zone, (_STR,)),
    Simple("decimal", Decimal, lambda v: (str(v),), Decimal, (_STR,)),
    Simple("fraction", Fraction, lambda v: (v.numerator, v.denominator), _fraction, (_INT,) * 2),
    Simple("uuid", UUID, lambda v: (v.bytes,), lambda data: UUID(bytes=data), (_BYTES,)),
    Simple("path", PosixPath, lambda v: (str(v),), PosixPath, (_STR,)),
    Simple("pure_path", PurePosixPath, lambda v: (str(v),), PurePosixPath, (_STR,)),
    Simple("unset", msgspec.UnsetType, lambda _: (), lambda: msgspec.UNSET, ()),
    Simple("numpy_str", np.str_, lambda v: (str.__str__(v),), np.str_, (_STR,)),
    Simple("numpy_bytes", np.bytes_, lambda v: (bytes(v),), np.bytes_, (_BYTES,)),
)

BY_TYPE: Final = {simple.of: simple for simple in _SIMPLES}
BY_NAME: Final = {simple.name: simple for simple in _SIMPLES}
