from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.results.columns import (
    booleans,
    coded,
    names,
    numbers,
    optional_numbers,
    strings,
    to_numpy,
)

texts = st.lists(st.none() | st.text(st.characters(exclude_categories=("Cs",))), max_size=40)


@given(texts)
def test_strings_are_those_that_pyarrow_makes(values: list[str | None]) -> None:
    made = strings(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))


@given(st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=40))
def test_optional_numbers_are_those_that_pyarrow_makes(values: list[int | None]) -> None:
    made = optional_numbers(values, pa.int32())
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.int32()))


@given(st.lists(st.booleans(), max_size=40))
def test_booleans_are_those_that_pyarrow_makes(values: list[bool]) -> None:
    assert booleans(values).equals(pa.array(values, pa.bool_()))


@given(st.lists(st.sampled_from(["a", "b", "ü"]), max_size=40))
def test_names_are_a_dictionary(values: list[str]) -> None:
    made = names(values)
    made.validate(full=True)
    assert made.type == pa.dictionary(pa.int32(), pa.string())
    assert made.to_pylist() == values
    assert len(made.dictionary) == len(set(values))


@given(st.lists(st.none() | st.floats(allow_nan=False), max_size=40), st.integers(0, 5))
def test_numbers_come_back_as_pyarrow_gives_them(values: list[float | None], skip: int) -> None:
    array = pa.array(values, pa.float64()).slice(skip)
    np.testing.assert_array_equal(to_numpy(array), array.to_numpy(zero_copy_only=False))


def test_a_code_says_which_string() -> None:
    assert coded(np.array([1, 0, 1], np.uint8), ["x", "y"]).to_pylist() == ["y", "x", "y"]


def test_large_unsigned_numbers_are_kept() -> None:
    assert optional_numbers([2**64 - 1, 1], pa.uint64()).to_pylist() == [2**64 - 1, 1]


def test_a_number_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(OverflowError):
        numbers([2**31], pa.int32())
    with pytest.raises(OverflowError):
        optional_numbers([-1], pa.uint64())
