"""Results of a group call that come one by one: few messages, and nobody waits for the last."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from agentsim.actors.codec import Codec
from agentsim.actors.gather import Gather
from agentsim.actors.messages import CallMany, DoneMany

COUNT = 60


class Sent(list[DoneMany]):
    def offsets(self) -> list[int]:
        return [int(i) for done in self for i in np.frombuffer(done.offsets, "<u4")]


@pytest.fixture
async def sent() -> Sent:
    return Sent()


@pytest.fixture
async def gather(sent: Sent) -> Gather:
    call = CallMany(1, 1, 0, COUNT, "act", b"", (), ())
    return Gather(call, sent.append, Codec([]), "here", asyncio.get_running_loop())


async def breath() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_those_that_come_alone_travel_together(gather, sent) -> None:
    for offset in range(COUNT):
        gather.value(offset, 1.0)
        await asyncio.sleep(0.001)
    assert sent.offsets() == list(range(COUNT))
    assert len(sent) < COUNT / 3


async def test_one_after_a_pause_does_not_wait_for_others(gather, sent) -> None:
    gather.value(0, 1.0)
    await breath()
    assert sent.offsets() == [0]
    await asyncio.sleep(0.05)
    gather.value(1, 1.0)
    await breath()
    assert sent.offsets() == [0, 1]


async def test_nothing_waits_when_the_last_has_come(gather, sent) -> None:
    gather.value(0, 1.0)
    await breath()
    gather.value(1, "text")
    await breath()
    assert sent.offsets() == [0]  # the second one waits for more
    gather.numbers(list(range(2, COUNT)), [None] * (COUNT - 2))
    await breath()
    assert sent.offsets() == list(range(COUNT))
    assert gather.ended
    await asyncio.sleep(0.03)
    assert len(sent) == 2
