"""What is sent arrives: equal, of the same type, down to the last part."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import codec_samples as samples
import msgspec
import numpy as np
import pytest
from example_counts import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from agentsim.actors.codec import MAX_DEPTH, Codec
from agentsim.actors.refs import AgentRef, ResultRef

CODEC = Codec(["codec_samples"])


def parts(value: Any) -> Iterator[Any]:
    """What a value consists of, for a comparison by type."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield item
    elif isinstance(value, list | tuple):
        yield from value
    elif isinstance(value, msgspec.Struct):
        yield from (getattr(value, name) for name in value.__struct_fields__)
    elif dataclasses.is_dataclass(value):
        yield from (getattr(value, item.name) for item in dataclasses.fields(value))
    elif isinstance(value, dt.datetime | dt.time):
        yield from (value.replace(tzinfo=None).isoformat(), value.fold, value.tzinfo)


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal and of the same types; nan is nan, and -0 is not 0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes() or (a != a and b != b)
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, Decimal):
        return a.as_tuple() == b.as_tuple()
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, enum.Enum):
        return a is b
    if isinstance(a, set | frozenset):
        return len(a) == len(b) and all(any(same(x, y) for y in b) for x in a)
    inside, other = list(parts(a)), list(parts(b))
    if inside or other:
        return len(inside) == len(other) and all(map(same, inside, other))
    return bool(a == b)


def round_trip(value: Any) -> Any:
    return CODEC.decode(CODEC.encode(value))


_DATES = st.datetimes(
    timezones=st.none()
    | st.sampled_from([dt.UTC, ZoneInfo("Europe/Berlin"), dt.timezone(dt.timedelta(0, 60), "x")]),
    allow_imaginary=False,
)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
HASHABLE_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | _TEXT
    | st.binary(max_size=8)
    | st.complex_numbers()
    | st.builds(range, st.integers(), st.integers(), st.integers(1))
    | _DATES
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals().filter(lambda number: not number.is_snan())
    | st.fractions()
    | st.uuids()
    | st.sampled_from([*samples.Color, *samples.Word, *samples.Level])
    | st.sampled_from([samples.Right(0), samples.Right(5), samples.Bits(9), samples.Bits.A])
    | st.builds(samples.Point, st.floats(), st.integers())
    | st.builds(samples.Cell, row=st.integers(), column=st.integers())
    | st.sampled_from([msgspec.UNSET, PosixPath("a/b"), PurePosixPath("/c")])
)
KEYS = HASHABLE_LEAVES | st.tuples(HASHABLE_LEAVES, st.frozensets(HASHABLE_LEAVES, max_size=2))
_NUMBERS = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="?")
    | hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64))
    | hnp.complex_number_dtypes(endianness="?", sizes=(64, 128))
    | hnp.datetime64_dtypes(endianness="?")
    | hnp.timedelta64_dtypes(endianness="?")
    | hnp.byte_string_dtypes(min_len=1, max_len=5)
    | hnp.unicode_string_dtypes(endianness="?", min_len=1, max_len=5)
)


def has_titles(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return has_titles(dtype.subdtype[0])
    return any(len(item) > 2 or has_titles(item[0]) for item in (dtype.fields or {}).values())


DTYPES = _NUMBERS | hnp.nested_dtypes(subtype_strategy=_NUMBERS, max_leaves=4).filter(
    lambda dtype: dtype.subdtype is None and dtype.itemsize > 0 and not has_titles(dtype)
)
ARRAYS = hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(_TEXT, inner, max_size=4)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(KEYS, max_size=4)
        | st.frozensets(KEYS, max_size=4)
        | st.builds(samples.Step, _TEXT, inner)
        | st.builds(samples.Box, inner)
        | st.builds(samples.Pair, inner, inner)
        | st.builds(samples.Record, inner, inner, st.just(msgspec.UNSET) | inner)
        | st.builds(samples.Child, st.lists(st.builds(samples.Step, inner)), age=inner)
    )


VALUES = st.recursive(HASHABLE_LEAVES | ARRAYS | st.binary().map(bytearray), containers)


@given(VALUES)
@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
def test_a_value_arrives_as_it_was_sent(value: Any) -> None:
    assert same(round_trip(value), value)


@given(ARRAYS)
@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
def test_an_array_arrives_as_a_copy_that_may_be_written_to(array: np.ndarray[Any, Any]) -> None:
    arrived = round_trip(array)
    assert same(arrived, array)
    assert arrived.flags.writeable
    assert arrived.flags.c_contiguous
    assert arrived.flags.aligned
    assert same(round_trip(array.T), np.ascontiguousarray(array.T).reshape(array.T.shape))


@pytest.mark.parametrize("size", [0, 1, 3, 511, 512, 513, 100_000])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_arrays_of_any_size_and_step(size: int, step: int) -> None:
    array = np.arange(size, dtype=">f8")[::step]
    assert same(round_trip(array), array.copy())


@pytest.mark.parametrize(
    "scalar",
    [
        np.float64(math.pi),
        np.float32("nan"),
        np.float16(-0.0),
        np.int8(-1),
        np.uint64(2**64 - 1),
        np.bool_(True),
        np.complex64(1j),
        np.str_("a\0"),
        np.str_(""),
        np.bytes_(b"a\0"),
        np.datetime64("2024-02-29T12", "h"),
        np.datetime64("NaT"),
        np.timedelta64(3, "D"),
        np.void(b"abc"),
        np.array([(1, "x")], dtype=[("a", "i4"), ("b", "U3")])[0],
    ],
    ids=lambda scalar: f"{type(scalar).__name__}-{scalar}",
)
def test_a_numpy_scalar_stays_one(scalar: np.generic) -> None:
    arrived = round_trip([scalar])[0]
    assert type(arrived) is type(scalar)
    assert same(arrived, scalar)
    assert str(arrived) == str(scalar)


@pytest.mark.parametrize(
    "value",
    [
        *[0, -1, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(2**63) - 1, 10**4000, True, False],
        *[math.inf, -math.inf, math.nan, -0.0, 5e-324, "", "ß\0\U0010ffff", b"", bytearray(b"x")],
        *[(), [], {}, set(), frozenset(), ((),), [()], {()}, {(): ()}, {frozenset(): {}}],
        *[{1: "a", 1.5: "b", None: "c", False: "d", b"k": "e", 2**70: "f"}, {2**70}],
        *[{"b": 1, "a": 2}, {samples.Color.RED: 1}, {samples.Point(1, 2): samples.Point(3)}],
        *[complex(-0.0, math.nan), range(5, -5, -2), range(10**30)],
        *[Decimal("-0"), Decimal("sNaN12"), Decimal("1E+999999"), Fraction(2, 3)],
        *[UUID(int=7), PosixPath("."), PurePosixPath("/a/../b"), msgspec.UNSET],
        *[dt.timedelta.max, dt.timedelta.min, dt.date.max, dt.time(1, 2, 3, 4, fold=1), dt.UTC],
        dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        dt.timezone(dt.timedelta(hours=-5), "EST"),
        *[
            samples.Right(0),
            samples.Right.READ | samples.Right.RUN,
            samples.Bits.A | samples.Bits.B,
        ],
        *[samples.Nothing(), samples.Outer.Inner(3), samples.Box[int](4), samples.Tripled(2)],
    ],
    ids=repr,
)
def test_edges_arrive_as_they_are(value: Any) -> None:
    assert same(round_trip(value), value)
    assert same(round_trip({"in": [value]}), {"in": [value]})


def test_the_order_of_a_dict_is_kept() -> None:
    for table in ({"b": 1, "a": 2}, {(2,): 1, (1,): 2}, {2**70: 1, 1: 2}):
        assert list(round_trip(table)) == list(table)


def test_an_enum_arrives_as_the_member_itself_also_by_an_alias() -> None:
    assert round_trip(samples.Color.ROT) is samples.Color.RED
    assert round_trip([samples.Word.YES])[0] is samples.Word.YES


def test_a_dataclass_is_made_of_its_fields_and_runs_no_code() -> None:
    value = samples.Doubled(2)
    body = CODEC.encode(value)
    samples.ran.clear()
    assert CODEC.decode(body).x == 4
    plan = samples.Plan()
    plan.total = 9
    assert round_trip(plan).total == 9
    assert samples.ran == []


def test_what_is_computed_from_fields_stays_behind() -> None:
    child = samples.Child(age=4)
    assert child.twice == 8
    arrived = round_trip(child)
    assert arrived == child
    assert "twice" not in vars(arrived)
    assert arrived.twice == 8


def test_a_struct_that_changes_itself_when_it_is_made_arrives_as_it_was() -> None:
    value = samples.Tripled(2)
    assert value.x == 6
    assert round_trip(value).x == 6


def test_what_arrives_is_a_copy() -> None:
    shared: list[int] = [1]
    arrived = round_trip([shared, shared])
    assert arrived == [[1], [1]]
    assert arrived[0] is not arrived[1]


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"k": v}, samples.Box, lambda v: (v,)])
def test_values_are_read_to_the_depth_to_which_they_are_written(wrap: Any) -> None:
    value: Any = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    for _ in range(MAX_DEPTH):
        value = wrap(value)
    body = CODEC.encode(value)
    assert CODEC.encode(CODEC.decode(body)) == body


class Proxy:
    """Stands for an agent or a result."""

    def __init__(self, ref: AgentRef | ResultRef) -> None:
        self.ref = ref

    def __agentsim_ref__(self) -> AgentRef | ResultRef:
        return self.ref


BOB = AgentRef(3, 1, 2**40, "codec_samples:Agent")
FIRST, SECOND = ResultRef(0, 2**60), ResultRef(1, 5)


def test_references_are_found_and_replaced_once_each() -> None:
    first = Proxy(FIRST)
    value = [Proxy(BOB), {"a": first}, (first, Proxy(SECOND)), BOB, SECOND]
    pins: list[Any] = []
    body, needs = CODEC.encode_with_refs(value, pins=pins)
    assert needs == [FIRST, SECOND]
    assert pins == [first, first, value[2][1], SECOND]  # type: ignore[index]
    assert CODEC.find_refs(body) == [BOB, FIRST, SECOND]
    asked = []

    def stand_in(ref: AgentRef | ResultRef) -> Any:
        asked.append(ref)
        return f"stand-in {len(asked)}"

    arrived = CODEC.decode(body, stand_in)
    assert asked == [BOB, FIRST, SECOND]
    one, two, three = "stand-in 1", "stand-in 2", "stand-in 3"
    assert arrived == [one, {"a": two}, (two, three), one, three]


def test_what_refs_raises_passes_unchanged() -> None:
    def lost(ref: AgentRef | ResultRef) -> Any:
        raise LookupError(ref)

    with pytest.raises(LookupError):
        CODEC.decode(CODEC.encode(Proxy(BOB)), lost)


@pytest.mark.parametrize("value", [1, [1], (1,), samples.Nothing(), np.arange(3), {"a": (1,)}])
def test_values_without_references_have_none(value: Any) -> None:
    assert CODEC.find_refs(CODEC.encode(value)) == []


def test_a_call_is_its_positional_and_named_arguments() -> None:
    for args, kwargs in [((), {}), ((1, [2]), {"plan": samples.Plan()}), ((np.arange(3),), {})]:
        body, needs = CODEC.encode_call(args, kwargs)
        assert needs == []
        assert same(CODEC.decode(body), (args, kwargs))


def test_a_codec_reads_from_any_buffer_and_keeps_none() -> None:
    data = bytearray(CODEC.encode({"a": np.arange(3), "b": "text", "c": b"bytes"}))
    arrived = CODEC.decode(memoryview(data))
    data[:] = bytes(len(data))
    assert same(arrived, {"a": np.arange(3), "b": "text", "c": b"bytes"})


def test_two_processes_may_know_different_modules() -> None:
    sender = Codec(["codec_samples", "other"])
    assert CODEC.decode(sender.encode(samples.Step("x"))) == samples.Step("x")
    assert sender != CODEC
    assert Codec(["codec_samples"]) == CODEC
    with pytest.raises(TypeError):
        Codec("codec_samples")
