"""Rows of two tables, paired by key and compared by column."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.results.aligned import align, differing, in_order, unequal
from agentsim.results.pieces import Pieces

KEYS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), max_size=12)


def columns(keys: list[tuple[int, int]]) -> list[np.ndarray]:
    return [np.array([key[i] for key in keys], np.int32) for i in range(2)]


@given(KEYS, KEYS)
def test_pairs_are_what_both_have_as_often_as_both_have_it(left, right) -> None:
    pairs = align(columns(left), columns(right))
    mine = [left[row] for row in pairs.left]
    assert mine == [right[row] for row in pairs.right]
    assert mine == sorted(mine)
    assert Counter(mine) == Counter(left) & Counter(right)
    assert Counter(left[row] for row in pairs.only_left) == Counter(left) - Counter(right)
    assert Counter(right[row] for row in pairs.only_right) == Counter(right) - Counter(left)


def test_keys_of_any_size() -> None:
    big = [np.array([1, 2**31 - 1]), np.array([0, 2**32 - 1], np.int64), np.array([0, 2**31 - 1])]
    pairs = align(big, [column[::-1] for column in big])
    assert pairs.left.tolist() == [0, 1]
    assert pairs.right.tolist() == [1, 0]


def test_rows_by_number() -> None:
    pairs = in_order(2, 4)
    assert (len(pairs), pairs.only_left.tolist(), pairs.only_right.tolist()) == (2, [], [2, 3])


MESSAGES = pa.large_list(pa.struct([("role", pa.large_string()), ("content", pa.large_string())]))


@pytest.mark.parametrize(
    ("left", "right", "type", "mask"),
    [
        ([1.5, None, None, 2.0], [1.5, None, 3.0, None], pa.float64(), [0, 0, 1, 1]),
        (["a", "", None], ["b", None, None], pa.large_string(), [1, 1, 0]),
        ([True, False], [True, True], pa.bool_(), [0, 1]),
        ([], [], pa.float64(), []),
        (
            [[("u", "a")], [("u", "a")], [("u", "a")], [], [("u", "a"), ("u", "b")], [("s", "a")]],
            [[("u", "a")], [("u", "b")], [], [], [("u", "a"), ("u", "c")], [("u", "a")]],
            MESSAGES,
            [0, 1, 1, 0, 1, 1],
        ),
    ],
)
def test_what_is_unequal(left, right, type, mask) -> None:
    arrays = (pa.array(values, type) for values in (left, right))
    assert unequal(*arrays).tolist() == [bool(bit) for bit in mask]


def test_columns_of_other_types_and_missing_ones() -> None:
    assert unequal(pa.array([1, 2]), pa.array([1.0, 2.5])).tolist() == [False, True]
    assert unequal(pa.array([1, 2]), pa.array(["1", "x"])).tolist() == [False, True]
    assert unequal(pa.nulls(2), pa.array(["a", None])).tolist() == [True, False]
    left = pa.array([{"a": 1}, None], pa.struct([("a", pa.int64())]))
    right = pa.array([{"a": 1, "b": 2}, None], pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    assert unequal(left, right).tolist() == [True, False]
    assert unequal(left, left).tolist() == [False, False]


def test_columns_are_compared_over_files_and_row_groups_in_another_order(tmp_path: Path) -> None:
    numbers = np.arange(100)
    values = [f"v{n}" for n in numbers]
    shuffled = np.random.default_rng(1).permutation(100)
    table = pa.table({"key": numbers, "value": values})
    pq.write_table(table.slice(0, 30), tmp_path / "a.parquet", row_group_size=7)
    pq.write_table(table.slice(30), tmp_path / "b.parquet")
    values[42] = "other"
    changed = pa.table({"key": numbers, "value": values}).take(pa.array(shuffled))
    pq.write_table(changed, tmp_path / "c.parquet", row_group_size=13)
    with (
        Pieces([tmp_path / "a.parquet", tmp_path / "b.parquet"]) as left,
        Pieces([tmp_path / "c.parquet"]) as right,
    ):
        pairs = align([left.numbers("key")], [right.numbers("key")])
        assert np.flatnonzero(differing(left, right, pairs, "value")).tolist() == [42]
        assert left.value(42, "value") == "v42"
        assert right.value(int(pairs.right[42]), "value") == "other"
        assert differing(left, right, pairs, "nowhere").sum() == 0
