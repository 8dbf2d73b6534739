"""Arrow arrays out of numpy arrays and lists of strings, and numbers out of Arrow arrays.

`pyarrow.array` and `Array.to_numpy` import pandas on their first call, 0.3 CPU seconds that a run
has no use for. These handle the buffers themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def numbers(
    values: NDArray[Any] | Sequence[float],
    type: pa.DataType,
    *,
    valid: NDArray[np.bool_] | None = None,
) -> pa.Array[Any]:
    """A numeric array.

    Args:
        values: `(n,)`. An array must fit the type; of a list this is checked.
        type: any fixed-width numeric type.
        valid: `(n,)`, False where the value is null; None: nowhere.

    Raises:
        OverflowError: a number of a list does not fit.
    """
    dtype = type.to_pandas_dtype()
    column = np.ascontiguousarray(values, dtype=dtype)
    return pa.Array.from_buffers(type, len(column), [_bitmap(valid), _buffer(column)])


def optional_numbers(values: Sequence[float | None], type: pa.DataType) -> pa.Array[Any]:
    """A numeric array from a list in which None is null."""
    valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return numbers([0 if value is None else value for value in values], type, valid=valid)


def booleans(values: NDArray[np.bool_] | Sequence[bool]) -> pa.Array[Any]:
    """A boolean array without nulls."""
    bits = np.asarray(values, dtype=np.bool_)
    return pa.Array.from_buffers(pa.bool_(), len(bits), [None, _buffer(_packed(bits))])


def strings(values: Sequence[str | None]) -> pa.Array[Any]:
    """A string array in which None is null; at most 2 GiB of UTF-8."""
    encoded = [b"" if value is None else value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=offsets[1:])
    if offsets[-1] >= 2**31:
        raise OverflowError(f"{offsets[-1]} bytes of text in one array")
    valid = None
    if None in values:
        valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
    buffers = [
        _bitmap(valid),
        _buffer(offsets.astype(np.int32)),
        pa.py_buffer(b"".join(encoded)),
    ]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def names(values: Sequence[str]) -> pa.Array[Any]:
    """A dictionary of strings without nulls, for few values that repeat."""
    codes: dict[str, int] = {}
    indices = np.fromiter(
        (codes.setdefault(value, len(codes)) for value in values), np.int32, len(values)
    )
    return coded(indices, list(codes))


def optional_names(values: Sequence[str | None]) -> pa.Array[Any]:
    """A dictionary of strings in which None is null, for few values that repeat."""
    codes: dict[str, int] = {}
    indices = [None if value is None else codes.setdefault(value, len(codes)) for value in values]
    return pa.DictionaryArray.from_arrays(
        optional_numbers(indices, pa.int32()), strings(list(codes))
    )


def coded(indices: NDArray[Any], values: Sequence[str]) -> pa.Array[Any]:
    """A dictionary of strings without nulls.

    Args:
        indices: `(n,)` integers, into `values`.
        values: the strings.
    """
    return pa.DictionaryArray.from_arrays(numbers(indices, pa.int32()), strings(values))


def to_numpy(array: pa.Array[Any]) -> NDArray[Any]:
    """The numbers of an array: nan where a floating-point number is null.

    Args:
        array: of a fixed-width numeric type; integers must have no nulls.
    """
    dtype, rows = array.type.to_pandas_dtype(), slice(array.offset, array.offset + len(array))
    bitmap, data = array.buffers()
    if data is None:
        return np.empty(0, dtype)
    values: NDArray[Any] = np.frombuffer(memoryview(data), dtype)[rows]
    if array.null_count and bitmap is not None:
        bits = np.unpackbits(np.frombuffer(memoryview(bitmap), np.uint8), bitorder="little")
        values = np.where(bits[rows].astype(np.bool_), values, np.nan)
    return values


def _packed(bits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.packbits(bits, bitorder="little")


def _bitmap(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if valid is None or valid.all() else _buffer(_packed(valid))


def _buffer(column: NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(column.data)
