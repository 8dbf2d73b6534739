"""What cannot travel is refused where it is sent, with its place and what to do instead."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import io
import math
import re
import threading
from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import codec_samples as samples
import msgspec
import numpy as np
import pytest

from agentsim.actors.codec import MAX_BYTES, MAX_DEPTH, CannotTravel, Codec
from agentsim.errors import UserError

CODEC = Codec(["codec_samples", "codec_other"])


@dataclasses.dataclass
class Other:
    x: int


class Text(str):
    __slots__ = ()


class Zone(tzinfo):
    pass


class Gone:
    def __agentsim_ref__(self) -> Any:
        raise UserError("its call was cancelled")


def looped() -> Any:
    plan = samples.Plan([samples.Step("a"), samples.Step("b")])
    plan.steps[1].callback = {"back": plan}
    return plan


def looped_list() -> Any:
    items: list[Any] = [1]
    items.append(items)
    return items


def deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def unset() -> Any:
    return [samples.Unset()]


def bits() -> Any:
    return {"right": samples.Bits(4)}


FUNCTION = "is a function; pass its name, and let the method look it up"

REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: len, f"argument `plan` {FUNCTION}"),
    (
        lambda: samples.Plan([*[samples.Step("x")] * 3, samples.Step("y", lambda: 1)]),
        f"argument `plan`: .steps[3].callback {FUNCTION}",
    ),
    (lambda: {"a": [1, (2, "x".upper)]}, f"argument `plan`: ['a'][1][1] {FUNCTION}"),
    (lambda: {1.5: len}, f"argument `plan`: [1.5] {FUNCTION}"),
    (lambda: {samples.Color.RED: len}, f"argument `plan`: [Color] {FUNCTION}"),
    (lambda: [{len: 1}], f"argument `plan`: a key of [0] {FUNCTION}"),
    (lambda: {(1, len): 1}, f"argument `plan`: [1] of a key {FUNCTION}"),
    (lambda: [{(1, len)}], f"argument `plan`: [1] of an element of [0] {FUNCTION}"),
    (lambda: {"k" * 50: len}, f"argument `plan`: ['{'k' * 38}… {FUNCTION}".replace("…", "…]")),
    (lambda: [samples.Plan], "argument `plan`: [0] is a class; pass its name"),
    (lambda: [math], "argument `plan`: [0] is a module; pass its name"),
    (lambda: (i for i in [1]), "argument `plan` is a generator; pass a list"),
    (lambda: [io.StringIO()], "argument `plan`: [0] is an open file; pass its path"),
    (lambda: memoryview(b""), "argument `plan` is a memoryview; pass bytes"),
    (lambda: ValueError("x"), "argument `plan` is an exception (builtins:ValueError); raise it"),
    (threading.Lock, "argument `plan` is a _thread:lock, which does not travel; pass"),
    (object, "object, which does not travel; pass plain data, or a dataclass, msgspec.Struct"),
    (samples.Ordinary, "argument `plan` is a codec_samples:Ordinary, which is no dataclass"),
    (samples.Agent, "argument `plan` is a codec_samples:Agent that is not on a worker; call its"),
    (samples.make_local, "argument `plan` is a codec_samples:make_local.<locals>.Local, and that"),
    (
        collections.OrderedDict,
        "argument `plan` is a collections:OrderedDict, which would arrive as dict; pass dict(…)",
    ),
    (lambda: collections.defaultdict(list), "is a collections:defaultdict, which would arrive as"),
    (
        lambda: [collections.Counter("a")],
        "[0] is a collections:Counter, which would arrive as dict",
    ),
    (lambda: Text("x"), ":Text, which would arrive as str; pass str(…)"),
    (samples.Mapping, "is a codec_samples:Mapping, which would arrive as dict; pass dict(…)"),
    (samples.Rows, "is a codec_samples:Rows, which would arrive as list; pass list(…)"),
    (samples.Failing, "is an exception (codec_samples:Failing); raise it, or pass its text"),
    (lambda: collections.namedtuple("P", "x")(1), "and test_codec_refusals is none of the run's"),
    (
        lambda: Other(1),
        "argument `plan` is a test_codec_refusals:Other, and test_codec_refusals is none of the "
        "run's modules (codec_other, codec_samples): add it",
    ),
    (lambda: samples.Secretive(1), "with attributes that are no fields of it: _cache"),
    (unset, "argument `plan`: [0] is a codec_samples:Unset without a value for each field"),
    (lambda: samples.Watched(1), "is a codec_samples:Watched, whose field x is a property"),
    (bits, "argument `plan`: ['right'] is a flag with bits that no member has"),
    (lambda: ["ab\ud800"], "argument `plan`: [0] is a text with a lone surrogate at position 2"),
    (lambda: "\ud800", "argument `plan` is a text with a lone surrogate at position 0"),
    (lambda: {"\ud800": 1}, "argument `plan`: a key is a text with a lone surrogate"),
    (lambda: [1, 1 << 600_000], "argument `plan`: [1] is an integer of 75001 bytes; at most 65536"),
    (lambda: datetime(2024, 1, 1, tzinfo=Zone()), "has a time zone of type Zone; use datetime.t"),
    (lambda: np.array([1, "x"], dtype=object), "is an array of Python objects; pass a list"),
    (
        lambda: [np.zeros(2, "g")],
        "[0] is an array of float128, which has no fixed size and meaning",
    ),
    (lambda: np.longdouble(1), "is a scalar of float128, which has no fixed size"),
    (lambda: np.array(["a"], dtype=np.dtypes.StringDType()), "is an array of Python objects"),
    (lambda: np.zeros(2, [("a", "O")]), "is an array of Python objects"),
    (lambda: np.zeros(2, "V0"), "is an array of |V0, whose items have no bytes"),
    (lambda: np.ma.array([1]), "MaskedArray, which would arrive as a plain array; pass numpy.arr"),
    (lambda: np.rec.array([(1,)]), "recarray, which would arrive as a plain array"),
    (lambda: np.rec.array([(1,)])[0], "record, which would lose its type; pass .item()"),
    (lambda: np.zeros(1, np.dtype("f8", metadata={"a": 1})), "an array with metadata in its dtype"),
    (lambda: np.broadcast_to(np.float64(1), (MAX_BYTES,)), "is an array of 512.0 MiB; at most 64"),
    (lambda: msgspec.Raw(b"\x01"), "is a msgspec:Raw, which"),
    (lambda: [msgspec.msgpack.Ext(1, b"")], "[0] is a msgspec.msgpack:Ext, which"),
    (lambda: [Gone()], "argument `plan`: [0] cannot be passed on: its call was cancelled"),
    (lambda: b"x" * MAX_BYTES, "argument `plan` is 64.0 MiB; at most 64 MiB travel at once"),
    (lambda: [b"x" * MAX_BYTES], "argument `plan` is 64.0 MiB; at most 64 MiB travel at once"),
    (
        looped,
        "argument `plan`: .steps[1].callback['back'] leads back to argument `plan`; a value must "
        "not contain itself",
    ),
    (
        lambda: {"x": looped_list()},
        "argument `plan`: ['x'][1] leads back to ['x']; a value must not contain itself",
    ),
    (lambda: deep(MAX_DEPTH + 1), f"argument `plan` has more than {MAX_DEPTH} containers inside"),
    (lambda: deep(100_000), f"argument `plan` has more than {MAX_DEPTH} containers inside each"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[case[1][:70] for case in REFUSED])
def test_what_cannot_travel_is_refused_with_its_place(
    make: Callable[[], Any], message: str
) -> None:
    with pytest.raises(CannotTravel) as caught:
        CODEC.encode(make(), path="argument `plan`")
    text = str(caught.value)
    assert text.startswith("argument `plan`")
    assert message in text
    assert isinstance(caught.value, UserError)


def test_without_a_path_the_message_begins_with_the_place() -> None:
    with pytest.raises(CannotTravel, match=f"^the value {re.escape(FUNCTION)}$"):
        CODEC.encode(len)
    with pytest.raises(CannotTravel, match=rf"^\[0\] {re.escape(FUNCTION)}$"):
        CODEC.encode([len])


async def test_what_is_awaited_is_refused() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    with pytest.raises(CannotTravel, match=r"\[0\] is a task or future; await it"):
        CODEC.encode([future])
    coroutine = asyncio.sleep(0)
    with pytest.raises(CannotTravel, match="is a coroutine; await it"):
        CODEC.encode(coroutine)
    coroutine.close()


def test_an_open_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w") as file, pytest.raises(CannotTravel, match="is an open file"):
        CODEC.encode(file)


CALLS = [
    ((len,), {}, f"argument `plan` of `act` {FUNCTION}"),
    ((1, [len]), {}, f"argument 2 of `act`: [0] {FUNCTION}"),
    ((), {"who": {"a": len}}, f"argument `who` of `act`: ['a'] {FUNCTION}"),
    ((), {"\ud800": 1}, "arguments of `act`: a key of [1] is a text with a lone surrogate"),
    ((looped_list(),), {}, "argument `plan` of `act`: [1] leads back to argument `plan` of `act`;"),
    ((deep(500),), {}, "argument `plan` of `act` has more than"),
    ((b"x" * MAX_BYTES,), {}, "arguments of `act` is 64.0 MiB"),
]


@pytest.mark.parametrize(("args", "kwargs", "message"), CALLS, ids=[c[2][:30] for c in CALLS])
def test_a_call_names_the_argument(args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(CannotTravel) as caught:
        CODEC.encode_call(args, kwargs, method="act", parameters=["plan"])
    assert message in str(caught.value)


def test_a_refusal_leaves_the_codec_as_it_was() -> None:
    for _ in range(2):
        with pytest.raises(CannotTravel):
            CODEC.encode([samples.Step("x"), len])
        body = CODEC.encode([samples.Step("x")])
        assert CODEC.decode(body) == [samples.Step("x")]


def test_pins_are_given_only_for_what_is_sent() -> None:
    pins: list[Any] = []
    with pytest.raises(CannotTravel):
        CODEC.encode_with_refs([Gone()], pins=pins)
    assert pins == []
