"""The ready line is found whatever a login shell writes around it."""

from collections.abc import AsyncIterator

import pytest

from agentsim.launch.base import listening
from agentsim.rpc.control import Listening

READY = b'{"ready":true,"port":7000,"pid":12,"version":"1"}\n'


async def said(*lines: bytes) -> AsyncIterator[bytes]:
    for line in lines:
        yield line


@pytest.mark.parametrize(
    "lines",
    [
        (READY,),
        (b"Welcome to gpu02\n", b"\n", READY),
        (b'{"ready": "not this"}\n', b"READY\n", READY),
        (b"\x1b[32mno line end " + READY,),
        (b"\xff\xfe\n", READY, b"and more\n"),
    ],
)
async def test_it_is_found(lines: tuple[bytes, ...]) -> None:
    assert await listening(said(*lines)) == Listening(True, 7000, 12, "1")


@pytest.mark.parametrize("lines", [(), (b"Welcome\n",), (READY[:20],)])
async def test_it_is_missed(lines: tuple[bytes, ...]) -> None:
    assert await listening(said(*lines)) is None
