"""A hostile peer gets one error for whatever it sends, and nothing of it stays."""

from __future__ import annotations

import enum
import importlib
import logging
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

import codec_samples as samples
import msgspec
import numpy as np
import pytest
from example_counts import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.msgpack import Ext

from agentsim.actors.codec import MAX_BYTES, BadValue, Codec
from agentsim.actors.refs import AgentRef, ResultRef
from agentsim.actors.wire import Kind, mark
from agentsim.rpc.envelope import WireError

CODEC = Codec(["codec_samples", "codec_broken", "codec_missing"])
FREE = settings(max_examples=examples(600), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    samples.ran.clear()
    before = set(sys.modules)
    yield
    assert samples.ran == []
    assert "codec_forbidden" not in sys.modules
    assert not {"pickle", "marshal"} & (set(sys.modules) - before)


def packed(*items: Any) -> bytes:
    return msgspec.msgpack.encode(list(items))


def marked(kind: Kind, *items: Any) -> list[Any]:
    return [mark(kind), *items]


def tables(value: Any, *, classes: Any = (), refs: Any = ()) -> bytes:
    return msgspec.msgpack.encode(marked(Kind.TABLES, classes, refs, value))


def an_object(path: str, fields: list[str], *values: Any) -> bytes:
    return tables(marked(Kind.OBJECT, 0, *values), classes=[[path, *fields]])


def data(content: bytes) -> Ext:
    return Ext(Kind.DATA.value, content)


def array(dtype: Any, shape: Any, content: bytes, *more: Any) -> bytes:
    return msgspec.msgpack.encode(marked(Kind.ARRAY, dtype, shape, data(content), *more))


def scalar(dtype: Any, content: bytes) -> bytes:
    return msgspec.msgpack.encode(marked(Kind.SCALAR, dtype, data(content)))


def simple(*parts: Any) -> bytes:
    return msgspec.msgpack.encode(marked(Kind.SIMPLE, *parts))


def member(path: str, sent: Any) -> bytes:
    return tables(marked(Kind.MEMBER, 0, sent), classes=[[path]])


def nested(head: bytes, depth: int) -> bytes:
    return head * depth + b"\x01"


S = "codec_samples:"
HOSTILE = {
    # classes
    "a module that is not allowed": an_object("codec_forbidden:X", ["x"], 1),
    "a function of the system": an_object("os:system", ["x"], 1),
    "a builtin": an_object("builtins:eval", ["x"], 1),
    "a module inside an allowed one": an_object("codec_samples.os:system", [], 1),
    "a class that an allowed module imported": an_object(S + "Popen", ["args"], ["ls"]),
    "a class by another name": an_object(S + "Alias", ["name", "callback"], "a", None),
    "a class of the module's module": an_object(S + "enum.Enum", [], 1),
    "a function of an allowed module": an_object(S + "make_local", []),
    "no class": an_object(S + "not_a_class", []),
    "a name that nothing has": an_object(S + "Missing", []),
    "a class in a function": an_object(S + "make_local.<locals>.Local", ["x"], 1),
    "a method": an_object(S + "Ordinary.__init__", []),
    "a dunder": an_object(S + "__builtins__", []),
    "a name of a metaclass": an_object(S + "Strange.anything", []),
    "an attribute of an instance": an_object(S + "not_a_class.real", []),
    "an empty name": an_object(S, []),
    "dots": an_object(S + "Plan..", []),
    "no colon": an_object("codec_samples", []),
    "no name at all": an_object("", []),
    "an ordinary class": an_object(S + "Ordinary", ["x"], 1),
    "a dataclass of a list": an_object(S + "Rows", ["name"], "x"),
    "an exception": an_object(S + "Failing", ["code"], 1),
    "a module that ends the program": an_object("codec_broken:X", []),
    "a module that is not there": an_object("codec_missing:X", []),
    "fewer fields": an_object(S + "Point", ["x"], 1),
    "more fields": an_object(S + "Point", ["x", "y", "z"], 1, 2, 3),
    "fields in another order": an_object(S + "Point", ["y", "x"], 1, 2),
    "fewer values": an_object(S + "Point", ["x", "y"], 1),
    "more values": an_object(S + "Point", ["x", "y"], 1, 2, 3),
    "fields that are no names": tables(1, classes=[[S + "Point", 1, 2]]),
    "a class that is no list": tables(1, classes=[S + "Point"]),
    "an empty class": tables(1, classes=[[]]),
    "classes that are no list": tables(1, classes=3),
    "references that are no list": tables(1, refs=3),
    "tables with a part missing": msgspec.msgpack.encode(marked(Kind.TABLES, [], [])),
    "tables in tables": tables(marked(Kind.TABLES, [], [], 1)),
    "an index too high": tables(marked(Kind.OBJECT, 1, 1, 2), classes=[[S + "Point", "x", "y"]]),
    "an index below 0": tables(marked(Kind.OBJECT, -1, 1, 2), classes=[[S + "Point", "x", "y"]]),
    "an index that is no int": tables(marked(Kind.OBJECT, True), classes=[[S + "Nothing"]] * 2),
    "an object of no class": msgspec.msgpack.encode(marked(Kind.OBJECT)),
    "an object of an enum": an_object(S + "Color", [], 1),
    "a member of a dataclass": tables(
        marked(Kind.MEMBER, 0, "x"), classes=[[S + "Point", "x", "y"]]
    ),
    "a member that is none": member(S + "Color", "GREEN"),
    "a member by what is no member": member(S + "Color", "__class__"),
    "a member by value": member(S + "Color", 1),
    "a member by a container": member(S + "Color", ["RED"]),
    "bits that are none": member(S + "Right", 8),
    "bits below 0": member(S + "Bits", -1),
    "bits of an IntFlag that are none": member(S + "Bits", 2),
    "bits by name": member(S + "Right", "READ"),
    # references
    "a reference too many": tables(marked(Kind.REFERENCE, 1), refs=[[0, 1]]),
    "a reference of three parts": tables(1, refs=[[0, 1, 2]]),
    "a reference of texts": tables(1, refs=[["0", "1"]]),
    "a reference that is a value": tables(1, refs=[5]),
    "a reference of floats": tables(1, refs=[[0, 1.5]]),
    "a reference without tables": msgspec.msgpack.encode(marked(Kind.REFERENCE, 0)),
    # marks
    "an unknown mark": msgspec.msgpack.encode([Ext(99, b"")]),
    "a mark with bytes": msgspec.msgpack.encode([Ext(Kind.TUPLE.value, b"x")]),
    "a mark alone": msgspec.msgpack.encode(mark(Kind.TUPLE)),
    "a mark in the middle": packed(1, mark(Kind.TUPLE)),
    "a mark as a key": msgspec.msgpack.encode({"a": {1: mark(Kind.TUPLE)}}),
    "a mark as a key of a map": b"\x81\xc7\x00\x02\x01",
    "data alone": msgspec.msgpack.encode(data(b"x")),
    "a timestamp": b"\xd6\xff\x00\x00\x00\x01",
    "a timestamp in a list": b"\x91\xd6\xff\x00\x00\x00\x01",
    "a list as a key": b"\x81\x91\x01\x02",
    "a map as a key": b"\x81\x80\x02",
    "an odd dict": msgspec.msgpack.encode(marked(Kind.DICT, 1, 2, 3)),
    "a dict with a key twice": msgspec.msgpack.encode(marked(Kind.DICT, 1, 2, 1, 3)),
    "a dict with a list as a key": msgspec.msgpack.encode(marked(Kind.DICT, [1], 2)),
    "a set with a list": msgspec.msgpack.encode(marked(Kind.SET, [1])),
    "a set with something twice": msgspec.msgpack.encode(marked(Kind.FROZENSET, 1, True)),
    "a set whose element fails": tables(
        marked(Kind.SET, marked(Kind.OBJECT, 0, 1)), classes=[[S + "Sneaky", "x"]]
    ),
    # arrays
    "an array of objects": array("|O", [1], bytes(8)),
    "an array of objects in fields": array(
        {"fields": [["a", "|O", 0]], "itemsize": 8}, [1], bytes(8)
    ),
    "a dtype that is code": array("__import__('os')", [1], bytes(8)),
    "a dtype with a comma": array("<f8,<f8", [1], bytes(16)),
    "a dtype with a repeat": array("(9999,9999)<f8", [1], bytes(8)),
    "a dtype with a huge size": array("<U999999999", [1], bytes(8)),
    "a dtype beyond an int": array("|S99999999999999999999", [1], bytes(8)),
    "a dtype with no size": array("|V0", [10**9], b""),
    "a dtype of no unit": array("<M8[parsec]", [1], bytes(8)),
    "dtypes deep enough for numpy to fail": b"\x94\xc7\x00\x09"
    + b"\x82\xa5shape\x90\xa4base" * 202
    + b"\xa3<f8\x91\x01\xc7\x08\x0b\0\0\0\0\0\0\0\0",
    "a dtype of 0 units": array("<M8[0s]", [1], bytes(8)),
    "a dtype that is a number": array(5, [1], bytes(8)),
    "a dtype that is empty": array({}, [1], bytes(8)),
    "a long double": array("<f16", [1], bytes(16)),
    "fields that overrun": array({"fields": [["a", "<f8", 4]], "itemsize": 8}, [1], bytes(8)),
    "fields before the start": array({"fields": [["a", "<f8", -8]], "itemsize": 8}, [1], bytes(8)),
    "fields of one name": array(
        {"fields": [["a", "|u1", 0], ["a", "|u1", 1]], "itemsize": 2}, [1], bytes(2)
    ),
    "fields without names": array({"fields": [[1, "<f8", 0]], "itemsize": 8}, [1], bytes(8)),
    "fields that are no fields": array({"fields": 3, "itemsize": 8}, [1], bytes(8)),
    "a size that is a text": array({"fields": [["a", "<f8", 0]], "itemsize": "8"}, [1], bytes(8)),
    "a size below 0": array({"fields": [["a", "<f8", 0]], "itemsize": -8}, [1], bytes(8)),
    "a base with a huge shape": array({"base": "<f8", "shape": [2**40, 2**40]}, [1], bytes(8)),
    "a base with sizes below 0": array({"base": "<f8", "shape": [-1]}, [1], bytes(8)),
    "a shape that is more": array("<f8", [2], bytes(8)),
    "a shape that is less": array("<f8", [1], bytes(16)),
    "a shape that overflows": array("<f8", [2**61], b""),
    "a shape that overflows to the size": array("<f8", [2**61 + 1], bytes(8)),
    "a shape with a part below 0": array("<f8", [-1, -1], bytes(8)),
    "a shape that is no int": array("<f8", [1.0], bytes(8)),
    "a shape that is a bool": array("<f8", [True], bytes(8)),
    "a shape that is no list": array("<f8", 1, bytes(8)),
    "a shape of 65 sizes": array("<f8", [1] * 65, bytes(8)),
    "a shape of 0 and too much": array("<f8", [0, 2**63, 2**63], b""),
    "an array with a part missing": msgspec.msgpack.encode(marked(Kind.ARRAY, "<f8", [1])),
    "an array with a part more": array("<f8", [1], bytes(8), 1),
    "an array of bytes that are no data": msgspec.msgpack.encode(
        marked(Kind.ARRAY, "<f8", [1], bytes(8))
    ),
    "truth that is neither": array("|b1", [2], b"\x01\x02"),
    "truth that is neither, in fields": array(
        {"fields": [["a", "|b1", 0]], "itemsize": 1}, [1], b"\x07"
    ),
    "a character that does not exist": array("<U1", [1], b"\xff\xff\xff\x7f"),
    "a character of the other order": array(">U1", [1], b"\x7f\x00\x00\x00"),
    "a scalar that is too long": scalar("<f8", bytes(9)),
    "a scalar of objects": scalar("|O", bytes(8)),
    "a scalar of truth": scalar("|b1", b"\x05"),
    # simple values
    "a simple value of no type": simple(),
    "a simple value of an unknown type": simple("os.system", "ls"),
    "a simple value of a container": simple(["int"], b""),
    "a huge int": simple("int", bytes(2**16 + 1)),
    "an int of a text": simple("int", "5"),
    "a bytearray of a size": simple("bytearray", 2**40),
    "a date that does not exist": simple("date", 2023, 2, 29),
    "a date of floats": simple("date", 2023.0, 2, 1),
    "a datetime of a pickle": simple("datetime", bytes(10)),
    "a datetime with a text as its zone": simple("datetime", 1, 1, 1, 0, 0, 0, 0, 0, "UTC"),
    "too many parts": simple("date", 2023, 2, 1, 1),
    "too few parts": simple("date", 2023, 2),
    "a timedelta beyond its range": simple("timedelta", 10**10, 0, 0),
    "a timedelta beyond an int": simple("timedelta", 2**63, 0, 0),
    "a zone beyond a day": simple("timezone", marked(Kind.SIMPLE, "timedelta", 2, 0, 0)),
    "a zone that is a path": simple("zone", "../../../etc/passwd"),
    "a zone that is absolute": simple("zone", "/etc/passwd"),
    "a zone that is a folder": simple("zone", "Europe"),
    "a zone that does not exist": simple("zone", "Europe/Nowhere"),
    "a number that is none": simple("decimal", "ten"),
    "a fraction over 0": simple("fraction", 1, 0),
    "a fraction of a text": simple("fraction", "1/3", 1),
    "a range without steps": simple("range", 0, 1, 0),
    "a uuid that is too short": simple("uuid", b"x"),
    "a path of bytes": simple("path", b"x"),
    # frames
    "nothing": b"",
    "a byte without meaning": b"\xc1",
    "something behind": b"\x01\x01",
    "a text that is no UTF-8": b"\xa1\xff",
    "a text with a surrogate": b"\xa3\xed\xa0\x80",
    "a list of 4 billion": b"\xdd\xff\xff\xff\xff\x01",
    "lists of 4 billion in each other": b"\xdd\xff\xff\xff\xff" * 300,
    "lists of millions in each other": b"\xdd\x00\x40\x00\x00" * 300,
    "a map of 4 billion": b"\xdf\xff\xff\xff\xff\x01",
    "a text of 4 billion": b"\xdb\xff\xff\xff\xffx",
    "bytes of 4 billion": b"\xc6\xff\xff\xff\xffx",
    "an extension of 4 billion": b"\xc9\xff\xff\xff\xff\x0bx",
    "lists too deep": nested(b"\x91", 300),
    "lists far too deep": nested(b"\x91", 1_000_000),
    "maps too deep": nested(b"\x81\x01", 300),
    "tuples too deep": nested(b"\x92\xc7\x00\x02", 300),
    "tuples far too deep": nested(b"\x92\xc7\x00\x02", 100_000),
    "sets far too deep": nested(b"\x92\xc7\x00\x04", 100_000),
    "simple values too deep": nested(b"\x93\xc7\x00\x0c\xa3int", 300),
    "keys too deep": b"\x81" + nested(b"\x91", 500),
    "dtypes too deep": b"\x94\xc7\x00\x09"
    + b"\x82\xa5shape\x90\xa4base" * 900
    + b"\xa3<f8\x91\x01\xc7\x08\x0b\0\0\0\0\0\0\0\0",
    "more than the most": bytes(MAX_BYTES + 1),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_bytes_are_refused(case: str) -> None:
    began = time.process_time()
    with pytest.raises(BadValue):
        CODEC.decode(HOSTILE[case], lambda ref: ref)
    assert time.process_time() - began < 2
    assert isinstance(BadValue("x"), WireError)


def test_what_is_hostile_is_so_for_one_reason() -> None:
    """The makers above make values that are read when nothing is wrong with them."""
    assert CODEC.decode(an_object(S + "Point", ["x", "y"], 1, 2)) == samples.Point(1, 2)
    assert CODEC.decode(member(S + "Color", "RED")) is samples.Color.RED
    assert CODEC.decode(member(S + "Right", 3)) == samples.Right(3)
    assert CODEC.decode(array("<f8", [1], bytes(8))).tolist() == [0.0]
    fields = {"fields": [["a", "<f8", 0]], "itemsize": 8}
    assert CODEC.decode(array(fields, [1], bytes(8)))["a"].tolist() == [0.0]
    assert CODEC.decode(scalar("<f8", bytes(8))) == 0
    assert CODEC.decode(simple("date", 2024, 2, 29)).day == 29
    assert CODEC.decode(tables(marked(Kind.REFERENCE, 0), refs=[[0, 1]]), str) == str(
        ResultRef(0, 1)
    )
    assert CODEC.decode(nested(b"\x91", 199))
    assert CODEC.decode(nested(b"\x92\xc7\x00\x02", 199))


def test_references_are_refused_where_there_can_be_none() -> None:
    body = CODEC.encode(AgentRef(0, 1, 2, "m:Bob"))
    with pytest.raises(BadValue, match="references where there can be none"):
        CODEC.decode(body)


def test_nothing_is_asked_for_before_classes_are_known() -> None:
    body = tables(marked(Kind.REFERENCE, 0), classes=[["os:x"]], refs=[[0, 1]])
    asked: list[Any] = []
    with pytest.raises(BadValue):
        CODEC.decode(body, asked.append)
    assert asked == []


def test_a_class_that_changed_is_named_with_its_fields() -> None:
    with pytest.raises(BadValue, match=r"codec_samples:Point has other fields here .*: x, y"):
        CODEC.decode(an_object(S + "Point", ["x"], 1))


def test_what_is_refused_is_not_kept(caplog: pytest.LogCaptureFixture) -> None:
    codec = Codec(["codec_samples"])
    caplog.set_level(logging.DEBUG)
    for case in HOSTILE.values():
        with pytest.raises(BadValue):
            codec.decode(case, lambda ref: ref)
    fresh = {S + name for name in ("Point", "Color", "Right", "Bits", "Nothing", "Sneaky")}
    assert set(codec._paths) <= fresh
    assert isinstance(samples.Bits, enum.EnumMeta)
    assert 2 not in samples.Bits._value2member_map_


def test_the_forbidden_module_could_be_imported() -> None:
    with pytest.raises(AssertionError, match="not allowed was imported"):
        importlib.import_module("codec_forbidden")


VALID = [
    CODEC.encode(value)
    for value in (
        {"a": [1, 2.5, None, "text"], "b": {(1, 2): {3, 4}}, 5: 2**70},
        samples.Child([samples.Step("a", samples.Pair(1, samples.Color.RED))], age=3),
        [np.arange(5), np.array([("x", 1)], [("a", "U2"), ("b", "i4")]), np.float32(2)],
        [AgentRef(0, 1, 2, "m:Bob"), ResultRef(0, 1), samples.Record(1, ["x"])],
    )
]


def attempt(body: bytes) -> None:
    """Read, ask for references, and read again what was read."""
    for read in (lambda: CODEC.decode(body, lambda ref: ref), lambda: CODEC.find_refs(body)):
        try:
            value = read()
        except BadValue:
            continue
        CODEC.encode(value)


@given(st.sampled_from(VALID), st.data())
@FREE
def test_damaged_values_raise_one_error_or_are_values(body: bytes, draws: st.DataObject) -> None:
    damaged = bytearray(body)
    for _ in range(draws.draw(st.integers(1, 4))):
        at = draws.draw(st.integers(0, len(damaged) - 1))
        what = draws.draw(st.sampled_from(["set", "insert", "delete"]))
        byte = draws.draw(
            st.integers(0, 255) | st.sampled_from([0x80, 0x90, 0xC7, 0xC0, 0xDD, 0xDF, 0xC9])
        )
        if what == "set":
            damaged[at] = byte
        elif what == "insert":
            damaged.insert(at, byte)
        elif len(damaged) > 1:
            del damaged[at]
    attempt(bytes(damaged))


@given(st.binary(max_size=64))
@example(b"")
@FREE
def test_random_bytes_raise_one_error_or_are_values(body: bytes) -> None:
    attempt(body)


TREES = st.recursive(
    st.none()
    | st.integers(-2, 3)
    | st.floats()
    | st.sampled_from(["", "<f8", "|b1", "int", "date", "zone", "decimal", "range", "path"])
    | st.sampled_from([S + "Point", S + "Color", S + "Record", "x", "y", "RED", "fields", "base"])
    | st.sampled_from([mark(kind) for kind in Kind if kind is not Kind.DATA])
    | st.binary(max_size=9).map(data)
    | st.binary(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.tuples(st.sampled_from([mark(k) for k in Kind]), st.lists(inner, max_size=4)).map(
            lambda pair: [pair[0], *pair[1]]
        )
        | st.dictionaries(st.sampled_from(["fields", "itemsize", "base", "shape"]), inner)
    ),
    max_leaves=12,
)


@given(TREES, st.lists(st.sampled_from([[S + "Point", "x", "y"], [S + "Color"]]), max_size=2))
@FREE
def test_trees_of_marks_raise_one_error_or_are_values(tree: Any, classes: Any) -> None:
    attempt(tables(tree, classes=classes, refs=[[0, 1]]))
    attempt(msgspec.msgpack.encode(tree))


@pytest.mark.parametrize("cut", range(4))
def test_every_truncation_is_refused(cut: int) -> None:
    body = VALID[cut]
    for length in range(len(body)):
        with pytest.raises(BadValue):
            CODEC.decode(body[:length], lambda ref: ref)


def test_hostile_bytes_need_no_memory_beyond_their_own() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for case in HOSTILE.values():
        with pytest.raises(BadValue):
            CODEC.decode(case, lambda ref: ref)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 256 * 1024
