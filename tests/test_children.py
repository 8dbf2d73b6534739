"""What a program is told when it has ended already."""

import asyncio
import sys

import pytest
import uvloop

from agentsim import children


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_what_is_told_to_a_program_that_has_ended_is_lost(run) -> None:
    async def work() -> int:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ""), stdin=asyncio.subprocess.PIPE
        )
        status = await process.wait()
        await asyncio.sleep(0.05)  # until the loop has closed its end of the pipe
        await children.tell(process, b"hello\n")
        return status

    assert run(work()) == 0


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_program_hears_all_that_it_is_told(run) -> None:
    async def work() -> bytes:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", "print(len(input()))"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        await children.tell(process, b"x" * 1_000_000 + b"\n")
        assert process.stdout is not None
        said = await process.stdout.read()
        await process.wait()
        return said

    assert run(work()) == b"1000000\n"
