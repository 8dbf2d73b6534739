"""The orchestrator's connection to a node, over gRPC through a proxy that fails in every way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from cut_proxy import CutProxy

from agentsim.node.door import Door, OnlyRun, RefusedError
from agentsim.rpc.channel import Client, serve
from agentsim.rpc.codec import encode
from agentsim.rpc.connection import Connection, JoinRefused
from agentsim.rpc.control import Join, Joined, Pulse
from agentsim.rpc.envelope import DATA, NODE, ORCHESTRATOR, PULSE, Envelope, Kind, WireError
from agentsim.rpc.links import Link
from agentsim.rpc.resumable import Resumable

COUNT = 60


class Echo:
    """A node that sends everything back, and a pulse each 50 ms."""

    def __init__(self) -> None:
        self.wire = Resumable()
        self.joins: list[Join] = []
        self._echoing = asyncio.ensure_future(self._echo())

    async def data(self, link: Link, join: Join) -> None:
        self.joins.append(join)
        await self.wire.detach()
        answer = encode(Joined(self.wire.received))
        await link.send(Envelope(Kind.JOINED, ORCHESTRATOR, NODE, answer))
        await self.wire.run(link, join.received)

    async def pulse(self, link: Link, join: Join) -> None:
        while True:
            await link.send(Envelope(Kind.PULSE, ORCHESTRATOR, NODE, encode(Pulse())))
            await asyncio.sleep(0.05)

    async def stop(self) -> None:
        await self.wire.close()
        await asyncio.gather(self._echoing, return_exceptions=True)

    async def _echo(self) -> None:
        while True:
            await self.wire.send(await self.wire.receive())


class Bed:
    """An orchestrator's connection, a proxy, and an echo behind it."""

    def __init__(self, proxy: CutProxy, connection: Connection, echo: Echo) -> None:
        self.proxy = proxy
        self.connection = connection
        self.echo = echo
        self.pulses = 0

    def count(self, _: Pulse) -> None:
        self.pulses += 1


@asynccontextmanager
async def bed() -> AsyncIterator[Bed]:
    echo = Echo()
    door = Door(OnlyRun(echo))
    server = await serve("127.0.0.1:0", {DATA: door.data, PULSE: door.pulse})
    async with CutProxy(f"127.0.0.1:{server.port}") as proxy:
        client = Client(proxy.target)
        seen: list[Bed] = []
        connection = Connection(
            client, run_id="run", epoch=1, on_pulse=lambda pulse: seen[0].count(pulse)
        )
        seen.append(Bed(proxy, connection, echo))
        running = asyncio.ensure_future(connection.run())
        try:
            yield seen[0]
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await client.close()
            await echo.stop()
            await server.stop(0)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.02)


async def talk(bed: Bed, fault: Callable[[], None], heal_after_s: float | None) -> None:
    """Send and take, with a fault in the middle; everything comes back once and in order."""
    loop = asyncio.get_running_loop()

    async def send() -> None:
        for number in range(COUNT):
            if number == COUNT // 2:
                await until(lambda: bed.connection.wire.received > 5)
                fault()
                if heal_after_s is not None:
                    loop.call_later(heal_after_s, bed.proxy.heal)
            await bed.connection.wire.send(Envelope(Kind.ASK, NODE, number, bytes(20_000)))

    sending = asyncio.ensure_future(send())
    async with asyncio.timeout(60):
        got = [(await bed.connection.wire.receive()).sender for _ in range(COUNT)]
    await sending
    assert got == list(range(COUNT))


async def test_everything_comes_back_over_a_connection_that_is_cut_and_made_again() -> None:
    async with bed() as b:
        await talk(b, b.proxy.cut, heal_after_s=0.5)
        assert len(b.echo.joins) > 1
        assert [join.resumes for join in b.echo.joins] == [False] + [True] * (len(b.echo.joins) - 1)


async def test_everything_comes_back_after_a_reset() -> None:
    async with bed() as b:
        await talk(b, b.proxy.reset, heal_after_s=None)
        assert len(b.echo.joins) == 2


async def test_everything_comes_back_after_a_moment_in_which_nothing_passes() -> None:
    async with bed() as b:
        await talk(b, b.proxy.drop, heal_after_s=0.5)


@pytest.mark.slow
async def test_everything_comes_back_after_a_silence_that_ends_the_connection() -> None:
    async with bed() as b:
        await talk(b, b.proxy.drop, heal_after_s=10)
        assert len(b.echo.joins) > 1


async def test_a_slow_way_loses_nothing_and_is_no_trouble() -> None:
    async with bed() as b:
        b.proxy.delay_s = 0.02
        await talk(b, lambda: None, heal_after_s=None)
        assert len(b.echo.joins) == 1
        assert b.connection.trouble == ""


async def test_pulses_go_on_while_data_waits() -> None:
    async with bed() as b:
        await until(lambda: b.pulses > 0)
        # Nobody takes what comes back: the way is full, and stays so.
        full = asyncio.ensure_future(_fill(b))
        await until(lambda: b.echo.wire.kept_bytes > 30_000_000)
        before = b.pulses
        await until(lambda: b.pulses > before + 5)
        full.cancel()
        await asyncio.gather(full, return_exceptions=True)


async def _fill(b: Bed) -> None:
    while True:
        await b.connection.wire.send(Envelope(Kind.ASK, NODE, 0, bytes(1_000_000)))


async def test_the_trouble_is_named_while_there_is_one() -> None:
    async with bed() as b:
        await until(lambda: b.connection.trouble == "")
        b.proxy.cut()
        await until(lambda: b.connection.trouble != "")
        b.proxy.heal()
        await until(lambda: b.connection.trouble == "")
        before = b.pulses
        await until(lambda: b.pulses > before)


async def test_a_node_that_was_told_to_end_is_not_joined_again() -> None:
    async with bed() as b:
        await until(lambda: b.connection.trouble == "")
        b.connection.leaving = True
        await b.echo.wire.close()
        await until(lambda: b.connection.trouble != "")
        await asyncio.sleep(0.5)
        assert len(b.echo.joins) == 1


async def test_a_node_that_ends_each_connection_at_once_is_not_asked_without_pause() -> None:
    async with bed() as b:
        await b.echo.wire.close()
        await asyncio.sleep(1.5)
        assert 1 <= len(b.echo.joins) <= 5


async def test_who_is_refused_does_not_try_again() -> None:
    async def find(join: Join) -> Echo:
        raise RefusedError("no such run here")

    door = Door(find)
    server = await serve("127.0.0.1:0", {DATA: door.data, PULSE: door.pulse})
    client = Client(f"127.0.0.1:{server.port}")
    connection = Connection(client, run_id="run", epoch=1, on_pulse=lambda pulse: None)
    with pytest.raises(JoinRefused, match="no such run here"):
        await asyncio.wait_for(connection.run(), 10)
    await client.close()
    await server.stop(0)


async def test_a_node_of_one_run_refuses_what_is_not_that_run() -> None:
    echo = Echo()
    find = OnlyRun(echo)
    with pytest.raises(RefusedError, match="started anew"):
        await find(Join("run", 5, 2, resumes=True))
    assert await find(Join("run", 5, 1)) is echo
    assert await find(Join("run", 5, 2, received=3, resumes=True)) is echo
    for join, why in [
        (Join("another", 5, 1), "another run"),
        (Join("run", 4, 9), "an older program"),
        (Join("run", 6, 1), "a newer program"),
    ]:
        with pytest.raises(RefusedError, match=why):
            await find(join)
    await echo.stop()


@pytest.mark.parametrize("first", [b"", b"\xc1"])
async def test_streams_that_do_not_begin_with_a_join_are_closed(first: bytes) -> None:
    echo = Echo()
    door = Door(OnlyRun(echo))
    server = await serve("127.0.0.1:0", {DATA: door.data})
    client = Client(f"127.0.0.1:{server.port}")
    link = await client.open(DATA)
    kind = Kind.JOIN if first else Kind.START
    await link.send(Envelope(kind, NODE, ORCHESTRATOR, first))
    assert await asyncio.wait_for(link.receive(), 10) is None
    with pytest.raises(WireError):
        await link.send(Envelope(kind, NODE, ORCHESTRATOR, first))
    assert not echo.joins
    await client.close()
    await echo.stop()
    await server.stop(0)
