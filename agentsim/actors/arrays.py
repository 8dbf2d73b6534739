"""Numpy arrays and scalars as a dtype, a shape and bytes.

An array arrives as a copy of its own that may be written to: C-contiguous, with the dtype that it
was sent with, byte order included.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np
from msgspec.msgpack import Ext
from numpy.typing import NDArray

from agentsim.actors.wire import DATA_CODE, MAX_BYTES, MAX_DEPTH, BadValue, Kind, Refused, mark

_SIMPLE = re.compile(
    r"[<>|](?:b1|[iu][1248]|f[248]|c(?:8|16)|[SUV][1-9]\d{0,8}"
    r"|[mM]8(?:\[(?:[1-9]\d{0,8})?(?:Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?)"
)
"""What `dtype.str` may be. Nothing else is given to `numpy.dtype`, which can do more."""

_ARRAY: Final = mark(Kind.ARRAY)
_SCALAR: Final = mark(Kind.SCALAR)
_SMALL_BYTES: Final = 4096
_MAX_CODE_POINT: Final = 0x10FFFF
_MAX_DIMENSIONS: Final = 64


def array_parts(array: NDArray[Any]) -> list[Any]:
    """What travels of an array.

    Raises:
        Refused: it has a dtype with no fixed size or meaning.
    """
    if array.nbytes > MAX_BYTES:
        raise Refused(
            f"is an array of {array.nbytes / 2**20:.1f} MiB; at most {MAX_BYTES // 2**20} MiB "
            "travel at once: send parts"
        )
    dtype = _described(array.dtype, "an array")
    return [_ARRAY, dtype, list(array.shape), Ext(DATA_CODE, _bytes_of(array))]


def scalar_parts(scalar: np.generic) -> list[Any]:
    """What travels of a numpy scalar.

    Raises:
        Refused: likewise.
    """
    dtype = _described(scalar.dtype, "a scalar")
    return [_SCALAR, dtype, Ext(DATA_CODE, scalar.tobytes())]


def read_array(parts: list[Any]) -> NDArray[Any]:
    """The array of `[dtype, shape, data]`.

    Raises:
        BadValue: the parts are no array, or do not fit each other.
    """
    try:
        dtype, shape, data = parts
    except ValueError as error:
        raise BadValue(f"an array has 3 parts, not {len(parts)}") from error
    if type(shape) is not list or len(shape) > _MAX_DIMENSIONS:
        raise BadValue("the shape of an array is no list of at most 64 sizes")
    if not all(type(size) is int and size >= 0 for size in shape):
        raise BadValue("the shape of an array has something that is no size")
    return _filled(_dtype(dtype, 0), tuple(shape), data)


def read_scalar(parts: list[Any]) -> Any:
    """The numpy scalar of `[dtype, data]`.

    Raises:
        BadValue: likewise.
    """
    if len(parts) != 2:
        raise BadValue(f"a numpy scalar has 2 parts, not {len(parts)}")
    return _filled(_dtype(parts[0], 0), (1,), parts[1])[0]


def _bytes_of(array: NDArray[Any]) -> bytes | memoryview:
    """Its bytes in C order; of a large array without a copy, if they lie so."""
    if array.nbytes <= _SMALL_BYTES:
        return array.tobytes()
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _described(dtype: np.dtype[Any], what: str) -> Any:
    """A dtype as plain data: a string, or the fields of a structured one."""
    if dtype.metadata is not None:  # dtypes with and without are equal: not for the cache
        raise Refused(f"is {what} with metadata in its dtype, which would be lost")
    return _named(dtype, what)


@lru_cache(maxsize=256)
def _named(dtype: np.dtype[Any], what: str) -> Any:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return {"base": _described(base, what), "shape": list(shape)}
    if dtype.fields is not None:
        return _described_fields(dtype, what)
    name = dtype.str
    if dtype.hasobject:
        raise Refused(f"is {what} of Python objects; pass a list, or {what} of numbers")
    if dtype.itemsize == 0:
        raise Refused(f"is {what} of {dtype}, whose items have no bytes")
    if not _SIMPLE.fullmatch(name):
        raise Refused(
            f"is {what} of {dtype}, which has no fixed size and meaning on every machine; "
            "convert it with .astype(…)"
        )
    return name


def _described_fields(dtype: np.dtype[Any], what: str) -> Any:
    fields = []
    by_name: Any = dtype.fields
    for name in dtype.names or ():
        field = by_name[name]
        if len(field) > 2:
            raise Refused(f"is {what} with titles in its dtype; name its fields instead")
        fields.append([name, _described(field[0], what), field[1]])
    if dtype.itemsize == 0 or not fields:
        raise Refused(f"is {what} of {dtype}, whose items have no bytes")
    return {"fields": fields, "itemsize": dtype.itemsize}


def _dtype(described: Any, depth: int) -> np.dtype[Any]:
    """The dtype that `_described` describes."""
    if type(described) is str:
        return _simple_dtype(described)
    if type(described) is not dict or depth > MAX_DEPTH:
        raise BadValue("a dtype is neither a name nor fields")
    try:
        if described.keys() == {"base", "shape"}:
            shape = tuple(described["shape"])
            if not all(type(size) is int and size >= 0 for size in shape):
                raise BadValue("the shape inside a dtype has something that is no size")
            return np.dtype((_dtype(described["base"], depth + 1), shape))
        fields = described["fields"]
        return np.dtype(
            {
                "names": [name for name, _, _ in fields],
                "formats": [_dtype(field, depth + 1) for _, field, _ in fields],
                "offsets": [offset for _, _, offset in fields],
                "itemsize": described["itemsize"],
            }
        )
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise BadValue(f"a dtype has fields that do not fit: {error}") from error


@lru_cache(maxsize=256)
def _simple_dtype(name: str) -> np.dtype[Any]:
    if not _SIMPLE.fullmatch(name):
        raise BadValue(f"no array has dtype {name[:40]!r}")
    try:
        return np.dtype(name)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadValue(f"no array has dtype {name!r}: {error}") from error


def _filled(dtype: np.dtype[Any], shape: tuple[int, ...], data: object) -> NDArray[Any]:
    """An array with a copy of the data."""
    if type(data) is not memoryview:
        raise BadValue("the data of an array is no data")
    expected = prod(shape) * dtype.itemsize
    if dtype.itemsize == 0 or data.nbytes != expected:
        raise BadValue(f"an array of {expected} bytes came with {data.nbytes}")
    try:
        array: NDArray[Any] = np.ndarray(shape, dtype, data).copy()
    except (ValueError, OverflowError) as error:
        raise BadValue(f"an array has an impossible shape: {error}") from error
    _check(array)
    return array


def _check(array: NDArray[Any]) -> None:
    """Refuse bytes that numpy takes on trust: truth values over 1, characters beyond Unicode."""
    if array.size == 0:
        return
    dtype = array.dtype
    if dtype.names is not None:
        for name in dtype.names:
            _check(array[name])
    elif dtype.kind == "b":
        if array.view(np.uint8).max() > 1:
            raise BadValue("an array of truth values has something else in it")
    elif dtype.kind == "U" and dtype.itemsize:
        points = np.ascontiguousarray(array).reshape(-1).view(dtype.str[0] + "u4")
        if points.max() > _MAX_CODE_POINT:
            raise BadValue("an array of texts has characters that do not exist")
