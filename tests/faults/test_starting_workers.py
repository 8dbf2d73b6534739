"""Workers that are started while a run goes on, and do not come, or come to find much waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from whole_runs import Program

from agentsim.errors import LaunchError
from agentsim.node import workers as module
from agentsim.node.workers import Workers
from agentsim.rpc.codec import encode
from agentsim.rpc.control import Retire
from agentsim.rpc.envelope import ORCHESTRATOR, Envelope, Kind


class Bed:
    """Workers, and who was told to have ended."""

    def __init__(self, folder: Path) -> None:
        self.ended: asyncio.Queue[int] = asyncio.Queue()
        self.full = False
        self.workers = Workers(folder, folder, self._hear, self._exited, self._admit)

    def _admit(self, workers: int) -> None:
        if self.full:
            raise LaunchError("there is no room")

    async def _hear(self, envelope: Envelope) -> None: ...

    def _exited(self, worker: int, status: int, log: Path) -> None:
        self.ended.put_nowait(worker)


@pytest.fixture
async def bed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bed]:
    program = Program(tmp_path)
    monkeypatch.setenv("AGENTSIM_TEST_MARK", program.env["AGENTSIM_TEST_MARK"])
    bed = Bed(tmp_path)
    yield bed
    await bed.workers.stop()
    await asyncio.to_thread(program.assert_nothing_left)


def message(worker: int) -> Envelope:
    return Envelope(Kind.RETIRE, worker, ORCHESTRATOR, encode(Retire(1)) + bytes(3_000_000))


@pytest.mark.slow
async def test_one_that_ends_before_it_is_connected_is_told_of_at_once(bed, monkeypatch) -> None:
    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    bed.workers.expect([0])
    async with asyncio.timeout(20):
        await bed.workers.start([0])
        assert await bed.ended.get() == 0
    assert not bed.workers.connected(0)


@pytest.mark.slow
async def test_one_that_was_ended_before_it_was_started_does_not_start(bed) -> None:
    bed.workers.expect([0])
    bed.workers.end(0)
    await bed.workers.start([0])
    assert bed.workers.running() == {}
    await bed.workers.send(message(0))  # dropped
    assert bed.ended.empty()


@pytest.mark.slow
async def test_who_sends_much_to_one_that_is_not_there_yet_waits_for_it(bed) -> None:
    bed.workers.expect([0])
    for _ in range(3):
        await asyncio.wait_for(bed.workers.send(message(0)), 0.5)
    starting = asyncio.ensure_future(bed.workers.start([0]))
    waiting = asyncio.ensure_future(bed.workers.send(message(0)))
    await asyncio.sleep(0)
    assert not waiting.done()
    await asyncio.wait_for(asyncio.gather(starting, waiting), 60)


async def test_what_was_sent_to_one_that_may_not_start_waits_no_longer(bed) -> None:
    bed.full = True
    bed.workers.expect([0])
    for _ in range(3):
        await asyncio.wait_for(bed.workers.send(message(0)), 0.5)
    waiting = asyncio.ensure_future(bed.workers.send(message(0)))
    with pytest.raises(LaunchError, match="no room"):
        await bed.workers.start([0])
    await asyncio.wait_for(waiting, 10)
    assert not bed.workers.has(0)
