"""Nodes that were started from another machine: what ends them, and what does not."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from whole_runs import Program

from agentsim.rpc.channel import Client
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.connection import Connection
from agentsim.rpc.control import NodeConfig, NodeReady, NodeStart
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind


class Leased:
    """A node with a lease, whose launcher has left."""

    def __init__(self, folder: Path, lease_s: float) -> None:
        self.program = Program(folder)
        own = folder / "own"  # goes with the node
        own.mkdir(mode=0o700)
        self.target = f"unix:{own}/node.sock"
        config = NodeConfig(self.target, str(own), str(folder), lease_s=lease_s)
        with (folder / "node.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "agentsim.node"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self.program.env,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(msgspec.json.encode(config) + b"\n")
        self.process.stdin.flush()
        assert b"ready" in self.process.stdout.readline()
        self.process.stdin.close()
        self.process.stdout.close()

    async def begin(self) -> tuple[Connection, Client, asyncio.Task[None]]:
        """Join it, and have it start a worker."""
        client = Client(self.target)
        connection = Connection(client, run_id="r", epoch=1, on_pulse=lambda pulse: None)
        running = asyncio.ensure_future(connection.run())
        start = NodeStart("here", 0, 1)
        await connection.wire.send(Envelope(Kind.START, NODE, ORCHESTRATOR, encode(start)))
        async with asyncio.timeout(60):
            ready = await connection.wire.receive()
        assert ready.kind is Kind.READY
        assert len(decode(ready.body, NodeReady).pids) == 1
        return connection, client, running

    async def leave(self, client: Client, running: asyncio.Task[None]) -> None:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await client.close()

    async def ends(self, within_s: float = 30) -> int:
        return await asyncio.to_thread(self.process.wait, within_s)


@pytest.fixture
def leased(tmp_path: Path) -> Iterator[Leased]:
    node = Leased(tmp_path, lease_s=3.0)
    try:
        yield node
        node.program.assert_nothing_left()
    finally:
        node.program.end()
        node.process.wait(10)


@pytest.mark.slow
async def test_a_node_lives_without_its_launcher_until_its_lease_runs_out(leased) -> None:
    _, client, running = await leased.begin()
    await asyncio.sleep(4.0)  # longer than the lease, which is held
    assert leased.process.poll() is None
    await leased.leave(client, running)
    assert await leased.ends() == 0
    assert "no orchestrator was connected for 3 s" in _log(leased)


async def test_a_node_ends_when_it_is_told_to(leased) -> None:
    connection, client, running = await leased.begin()
    await connection.wire.send(Envelope(Kind.LEAVE, NODE, ORCHESTRATOR, b""))
    assert await leased.ends() == 0
    await leased.leave(client, running)


SIGNALS = [pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGHUP, signal.SIGTERM)]


@pytest.mark.parametrize("number", [*SIGNALS, signal.SIGKILL])
async def test_what_a_signal_does_to_a_node(leased, number) -> None:
    _, client, running = await leased.begin()
    os.kill(leased.process.pid, number)
    if number is signal.SIGHUP:
        await asyncio.sleep(0.5)
        assert leased.process.poll() is None
        os.kill(leased.process.pid, signal.SIGTERM)
        number = signal.SIGTERM
    assert await leased.ends() == (0 if number is signal.SIGTERM else -signal.SIGKILL)
    # Its worker goes with it, however it went; the fixture looks.
    await leased.leave(client, running)


@pytest.mark.slow
async def test_a_node_that_was_stopped_for_longer_than_its_lease_goes_on(leased) -> None:
    connection, client, running = await leased.begin()
    os.kill(leased.process.pid, signal.SIGSTOP)
    await asyncio.sleep(9.0)  # longer than the connection lives, too
    os.kill(leased.process.pid, signal.SIGCONT)
    async with asyncio.timeout(30):
        while connection.trouble:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.05)
    assert leased.process.poll() is None
    assert len(leased.program.processes("agentsim.worker")) == 1
    await leased.leave(client, running)
    assert await leased.ends() == 0


def _log(leased: Leased) -> str:
    return (leased.program.folder / "node.log").read_text()
