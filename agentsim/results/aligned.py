"""Rows of two tables that belong together, and where they differ. All by columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from agentsim.results.columns import numbers, to_numpy
from agentsim.results.pieces import Pieces, Rows

Mask = NDArray[np.bool_]
_MOST_CODES = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Which rows belong together.

    Attributes:
        left, right: `(n,)` int64, row numbers of the pairs, in order of their keys.
        only_left, only_right: rows that have no counterpart, in order of their keys.
    """

    left: Rows
    right: Rows
    only_left: Rows
    only_right: Rows

    def __len__(self) -> int:
        return len(self.left)


def align(left: Sequence[NDArray[Any]], right: Sequence[NDArray[Any]]) -> Pairs:
    """Pair rows that have equal keys; the second one of a key with the second one.

    Args:
        left, right: the columns of the keys, integers, the most important one first.
    """
    n = len(left[0])
    codes = _codes([np.concatenate(both) for both in zip(left, right, strict=True)])
    mine, its = codes[:n], codes[n:]
    my_order, its_order = (np.argsort(part, kind="stable") for part in (mine, its))
    my_codes, its_codes = _numbered(mine[my_order], its[its_order])
    my_place = np.searchsorted(its_codes, my_codes)
    its_place = np.searchsorted(my_codes, its_codes)
    have = _found(its_codes, my_place, my_codes)
    has = _found(my_codes, its_place, its_codes)
    return Pairs(my_order[have], its_order[my_place[have]], my_order[~have], its_order[~has])


def in_order(left: int, right: int) -> Pairs:
    """Pair rows by their number.

    Args:
        left, right: how many there are.
    """
    both = np.arange(min(left, right))
    return Pairs(both, both, np.arange(right, left), np.arange(left, right))


def differing(left: Pieces, right: Pieces, pairs: Pairs, name: str) -> Mask:
    """`(n,)`, which pairs have different values in a column."""
    mask = np.zeros(len(pairs), np.bool_)
    for places, here, mine, its in _stretches(left, right, pairs):
        a = _taken(left.piece(places[0], name), mine)
        b = _taken(right.piece(places[1], name), its)
        mask[here] = unequal(a, b)
    return mask


def unequal(left: pa.Array[Any], right: pa.Array[Any]) -> Mask:
    """`(n,)`, where two columns of one length differ; null equals null alone."""
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return _bits(pc.xor(left.is_null(), right.is_null()))
    if pa.types.is_large_list(left.type) and pa.types.is_large_list(right.type):
        return _unequal_lists(left, right)
    null = _bits(pc.xor(left.is_null(), right.is_null()))
    if pa.types.is_struct(left.type) and pa.types.is_struct(right.type):
        return _unequal_structs(left, right) | null
    try:
        different = pc.not_equal(left, right)
    except pa.ArrowException:  # types that have nothing in common
        different = pc.not_equal(left.cast(pa.string()), right.cast(pa.string()))
    return _bits(different.fill_null(False)) | null


def _unequal_lists(left: Any, right: Any) -> Mask:
    lengths = [_int64(pc.list_value_length(part).fill_null(-1)) for part in (left, right)]
    mask: Mask = lengths[0] != lengths[1]
    same = np.flatnonzero(~mask & (lengths[0] > 0))
    if same.size:
        a, b = (pc.list_flatten(_taken(part, same)) for part in (left, right))
        items = np.repeat(same, lengths[0][same])
        mask[items[unequal(a, b)]] = True
    return mask


def _unequal_structs(left: Any, right: Any) -> Mask:
    names = {field.name for part in (left, right) for field in part.type}
    mask = np.zeros(len(left), np.bool_)
    for name in names:
        a, b = (_field(part, name) for part in (left, right))
        mask |= unequal(a, b)
    return mask


def _field(structs: Any, name: str) -> pa.Array[Any]:
    if structs.type.get_field_index(name) < 0:
        return pa.nulls(len(structs))
    field: pa.Array[Any] = pc.struct_field(structs, name)
    return field


def _stretches(
    left: Pieces, right: Pieces, pairs: Pairs
) -> Iterator[tuple[tuple[int, int], Rows, Rows, Rows]]:
    """Pairs by the row groups they are in: the groups, the pairs, and their rows within."""
    if not len(pairs):
        return
    groups = max(len(right.starts), 1)
    mine, its = left.places(pairs.left), right.places(pairs.right)
    codes = mine * groups + its
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    for here in np.split(order, ends):
        a, b = int(mine[here[0]]), int(its[here[0]])
        yield (
            (a, b),
            here,
            pairs.left[here] - left.starts[a],
            pairs.right[here] - right.starts[b],
        )


def _codes(columns: Sequence[NDArray[Any]]) -> Rows:
    """One number for each row, in the order of the columns taken together."""
    codes = np.zeros(len(columns[0]), np.int64)
    most = 1
    for column in columns:
        if not len(column):
            break
        low = int(column.min())
        span = int(column.max()) - low + 1
        if most * span >= _MOST_CODES:
            distinct, codes = np.unique(codes, return_inverse=True)
            most = len(distinct)
        codes = codes * span + (column.astype(np.int64) - low)
        most *= span
    return codes


def _numbered(left: Rows, right: Rows) -> tuple[Rows, Rows]:
    """Sorted codes with the number among equals put into them; as they are when all are unique."""
    counts = [_among_equals(codes) for codes in (left, right)]
    most = max((int(count.max()) for count in counts if count.size), default=0) + 1
    if most == 1:
        return left, right
    dense = np.unique(np.concatenate((left, right)), return_inverse=True)[1]
    return dense[: len(left)] * most + counts[0], dense[len(left) :] * most + counts[1]


def _among_equals(codes: Rows) -> Rows:
    """`0, 1, 2, …` within each run of equal numbers."""
    place = np.arange(len(codes))
    begins = np.ones(len(codes), np.bool_)
    begins[1:] = codes[1:] != codes[:-1]
    return place - np.maximum.accumulate(np.where(begins, place, 0))


def _found(codes: Rows, places: Rows, wanted: Rows) -> Mask:
    inside = places < len(codes)
    found: Mask = inside.copy()
    found[inside] = codes[places[inside]] == wanted[inside]
    return found


def _taken(array: pa.Array[Any], rows: Rows) -> pa.Array[Any]:
    if rows.size and rows[-1] - rows[0] + 1 == rows.size and bool(np.all(np.diff(rows) == 1)):
        return array.slice(int(rows[0]), rows.size)
    return array.take(numbers(rows, pa.int64()))


def _bits(values: Any) -> Mask:
    return to_numpy(pc.cast(values, pa.uint8())).astype(np.bool_)


def _int64(values: Any) -> Rows:
    return to_numpy(pc.cast(values, pa.int64()))
