"""How work that is cancelled ends the program."""

import asyncio
import os
import signal

import pytest

from agentsim.cli.signals import until_signal


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
async def test_a_signal_cancels_the_work_and_gives_its_code(number, code) -> None:
    tidied = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            tidied.append(True)

    asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), number)
    assert await until_signal(work()) == code
    assert tidied


async def test_work_that_is_cancelled_without_a_signal_is_a_bug() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="by no signal"):
        await until_signal(work())


async def test_work_that_ends_by_itself_gives_0() -> None:
    assert await until_signal(asyncio.sleep(0)) == 0
