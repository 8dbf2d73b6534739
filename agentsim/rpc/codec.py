"""Bytes of messages and of columns."""

from __future__ import annotations

import builtins
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

_encoder = msgspec.msgpack.Encoder()


def encode(message: object) -> bytes:
    """MessagePack bytes of a message of `rpc.messages`, or of plain data."""
    return _encoder.encode(message)


def decode(body: bytes | memoryview, type: type[T]) -> T:
    """The message of the given type in `body`.

    Raises:
        msgspec.DecodeError: the bytes are not MessagePack, or not a message of this type.
    """
    wanted: object = type
    if isinstance(wanted, builtins.type):
        return msgspec.msgpack.decode(body, type=type)
    decoded: T = _decoder(wanted).decode(body)
    return decoded


@lru_cache(maxsize=64)
def _decoder(type: Any) -> msgspec.msgpack.Decoder[Any]:
    """Of a type that is no class, like `list[X]`; to make one takes longer than to use it."""
    return msgspec.msgpack.Decoder(type)


def to_bytes(column: NDArray[np.generic]) -> bytes:
    """Little-endian bytes of a one-dimensional array."""
    return column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()


def agents_of(body: bytes) -> NDArray[np.uint32]:
    """The agent column of `Answers`."""
    return np.frombuffer(body, dtype="<u4")


def values_of(body: bytes) -> NDArray[np.float64]:
    """The value column of `Answers`."""
    return np.frombuffer(body, dtype="<f8")
