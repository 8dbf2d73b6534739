"""What writing and reading cost: printed with `-s`, and compared with MessagePack alone."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from typing import Any

import codec_samples as samples
import msgspec
import numpy as np
import pytest

from agentsim.actors.codec import Codec

CODEC = Codec(["codec_samples"])
VALUES: dict[str, Any] = {
    "float": 1.5,
    "None": None,
    "text": "a short text",
    "dict of 4": {"a": 1, "b": 2.0, "c": "x", "d": None},
    "1,000 dicts of 3": [{"a": 1, "b": 2.0, "c": "x"}] * 1000,
    "100,000 floats": [float(i) for i in range(100_000)],
    "call with a float": ((1.5,), {}),
    "1,000 dataclasses": [samples.Step("x")] * 1000,
    "array of 10": np.arange(10.0),
    "array of a million": np.arange(1e6),
}


def cost_us(function: Callable[[], Any]) -> float:
    """Least time of one call, in microseconds."""
    timer = timeit.Timer(function)
    number = max(1, int(0.02 / max(timer.timeit(1), 1e-7)))
    return min(timer.repeat(3, number)) / number * 1e6


@pytest.mark.parametrize("name", VALUES)
def test_cost(name: str) -> None:
    value = VALUES[name]
    body = CODEC.encode(value)
    write, read = cost_us(lambda: CODEC.encode(value)), cost_us(lambda: CODEC.decode(body))
    line = f"{name:>20}: {len(body):>9} bytes, write {write:9.2f} µs, read {read:9.2f} µs"
    if not isinstance(value, np.ndarray):
        plain = msgspec.msgpack.encode(value)
        alone = (
            cost_us(lambda: msgspec.msgpack.encode(value)),
            cost_us(lambda: msgspec.msgpack.decode(plain)),
        )
        line += f" (MessagePack alone: {alone[0]:.2f}, {alone[1]:.2f})"
    print(line)
    assert CODEC.encode(CODEC.decode(body)) == body
