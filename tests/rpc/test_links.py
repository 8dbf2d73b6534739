"""The transports keep order and size, and tell when the other side has gone."""

import asyncio
import struct
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from agentsim.rpc import links
from agentsim.rpc.envelope import DATA, NODE, ORCHESTRATOR, Envelope, Kind, WireError, pack
from agentsim.rpc.links import (
    MAX_MESSAGE_BYTES,
    Link,
    StreamLink,
    connect_unix,
    memory_pair,
)
from agentsim.rpc.sockets import private_folder
from agentsim.rpc.streams import client, serve

Handler = Callable[[Link], Awaitable[None]]


def message(body: bytes, worker: int = 0) -> Envelope:
    return Envelope(Kind.ANSWERS, ORCHESTRATOR, worker, body)


async def echo(link: Link) -> None:
    while (envelope := await link.receive()) is not None:
        await link.send(envelope)


@asynccontextmanager
async def over_unix(folder: Path, handler: Handler) -> AsyncIterator[Link]:
    served = []

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = StreamLink(reader, writer)
        served.append(asyncio.current_task())
        try:
            await handler(link)
        finally:
            await link.close()

    server = await asyncio.start_unix_server(serve_one, path=str(folder / "s"))
    link = await connect_unix(str(folder / "s"))
    try:
        yield link
    finally:
        await link.close()
        server.close()
        await asyncio.gather(*served, return_exceptions=True)


@asynccontextmanager
async def over_stream(address: str, handler: Handler) -> AsyncIterator[Link]:
    server = await serve(address, {DATA: handler})
    way = client(address)
    link = await way.open(DATA)
    try:
        yield link
    finally:
        await link.close()
        await way.close()
        await server.stop(0)


def over_grpc(folder: Path, handler: Handler) -> AbstractAsyncContextManager[Link]:
    return over_stream(f"unix:{folder}/g", handler)


def over_socket(folder: Path, handler: Handler) -> AbstractAsyncContextManager[Link]:
    return over_stream(f"{folder}/n", handler)


@asynccontextmanager
async def in_memory(folder: Path, handler: Handler) -> AsyncIterator[Link]:
    ours, theirs = memory_pair()
    task = asyncio.ensure_future(handler(theirs))
    try:
        yield ours
    finally:
        await ours.close()
        await task
        await theirs.close()


TRANSPORTS = [over_unix, over_grpc, over_socket, in_memory]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_messages_arrive_whole_and_in_order(transport, tmp_path) -> None:
    sizes = [0, 1, 70_000, 3_000_000, 5]
    async with transport(tmp_path, echo) as link:
        for worker, size in enumerate(sizes):
            await link.send(message(b"x" * size, worker))
        got = [await link.receive() for _ in sizes]
    assert [(e.sender, len(e.body)) for e in got] == list(enumerate(sizes))


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_several_may_send_at_once(transport, tmp_path) -> None:
    async with transport(tmp_path, echo) as link:
        await asyncio.gather(*(link.send(message(b"x" * 100_000, i)) for i in range(20)))
        got = [await link.receive() for _ in range(20)]
    assert sorted(envelope.sender for envelope in got) == list(range(20))


@pytest.mark.parametrize("transport", TRANSPORTS[:3])
async def test_receive_ends_when_the_other_side_leaves(transport, tmp_path) -> None:
    async def leave(link: Link) -> None:
        await link.receive()

    async with transport(tmp_path, leave) as link:
        await link.send(message(b""))
        assert await link.receive() is None


async def test_a_stream_that_is_cut_inside_a_message_is_an_error(tmp_path) -> None:
    async def half(link: StreamLink) -> None:
        link._writer.write(struct.pack("<I", 100) + b"only this")
        await link._writer.drain()

    async with over_unix(tmp_path, half) as link:
        with pytest.raises(WireError, match="cut inside a message"):
            await link.receive()


async def test_a_stream_that_claims_too_much_is_an_error(tmp_path) -> None:
    async def boast(link: StreamLink) -> None:
        link._writer.write(struct.pack("<I", MAX_MESSAGE_BYTES + 1))
        await link._writer.drain()

    async with over_unix(tmp_path, boast) as link:
        with pytest.raises(WireError, match="is over"):
            await link.receive()


async def test_too_large_a_message_is_not_sent(tmp_path) -> None:
    async with over_unix(tmp_path, echo) as link:
        with pytest.raises(WireError, match="is over"):
            await link.send(message(bytes(MAX_MESSAGE_BYTES)))
        await link.send(message(b"the link still works"))
        assert (await link.receive()).body == b"the link still works"


async def test_one_of_two_that_close_may_be_cancelled(tmp_path) -> None:
    async with over_unix(tmp_path, echo) as link:
        impatient, patient = [asyncio.ensure_future(link.close()) for _ in range(2)]
        await asyncio.sleep(0)  # both wait now
        impatient.cancel()
        await asyncio.wait_for(patient, 5)
    assert impatient.cancelled()


async def test_closing_does_not_wait_for_who_does_not_read(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(links, "_LAST_WORDS_S", 0.05)
    released = asyncio.Event()

    async def deaf(link: Link) -> None:
        await released.wait()

    async with over_unix(tmp_path, deaf) as link:
        sending = asyncio.ensure_future(link.send(message(bytes(10_000_000))))
        await asyncio.sleep(0.1)
        assert not sending.done()
        try:
            await asyncio.wait_for(link.close(), 5)
            await asyncio.wait([sending], timeout=5)  # nobody waits for a lost message
            assert sending.done()
        finally:
            released.set()


async def test_what_was_sent_before_closing_arrives(tmp_path) -> None:
    heard = []

    async def late(link: Link) -> None:
        await asyncio.sleep(0.2)
        while (envelope := await link.receive()) is not None:
            heard.append(envelope)

    async with over_unix(tmp_path, late) as link:
        sending = asyncio.ensure_future(link.send(message(bytes(1_000_000))))
        await asyncio.sleep(0.05)
        await link.close()
        await sending
    assert heard == [message(bytes(1_000_000))]


async def test_nobody_listens(tmp_path) -> None:
    with pytest.raises(WireError, match="cannot connect"):
        await connect_unix(str(tmp_path / "nothing"))


async def test_grpc_without_a_server_is_an_error(tmp_path) -> None:
    way = client(f"unix:{tmp_path}/nothing")
    link = await way.open(DATA)
    with pytest.raises(WireError, match=r"^cannot connect: No such file or directory$"):
        await link.send(Envelope(Kind.START, NODE, ORCHESTRATOR, b""))
    await way.close()


async def test_a_socket_without_a_server_is_an_error(tmp_path) -> None:
    with pytest.raises(WireError, match=r"cannot connect to .*No such file or directory"):
        await client(f"{tmp_path}/nothing").open(DATA)


async def test_a_socket_that_cannot_be_made_is_an_error(tmp_path) -> None:
    with pytest.raises(WireError, match=r"cannot listen on .*No such file or directory"):
        await serve(f"{tmp_path}/nowhere/n", {DATA: echo})


@pytest.mark.parametrize("first", [b"nonsense", pack(message(b"Data"))])
async def test_a_socket_ends_what_names_no_stream(tmp_path, first) -> None:
    served = []
    server = await serve(f"{tmp_path}/n", {DATA: served.append})
    reader, writer = await asyncio.open_unix_connection(f"{tmp_path}/n")
    writer.write(struct.pack("<I", len(first)) + first)
    assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    await server.stop(0)
    assert served == []


async def test_a_socket_ends_a_stream_that_is_not_served(tmp_path) -> None:
    async with over_socket(tmp_path, echo):
        way = client(f"{tmp_path}/n")
        link = await way.open("Gossip")
        assert await asyncio.wait_for(link.receive(), 10) is None
        await way.close()


async def test_a_server_of_a_socket_ends_streams_that_do_not_end(tmp_path) -> None:
    ended = asyncio.Event()

    async def never(link: Link) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    server = await serve(f"{tmp_path}/n", {DATA: never})
    way = client(f"{tmp_path}/n")
    link = await way.open(DATA)
    await link.send(message(b""))
    await asyncio.sleep(0.05)
    await asyncio.wait_for(server.stop(0.05), 10)
    assert ended.is_set()
    assert await link.receive() is None
    await way.close()


@pytest.mark.parametrize("deep", [False, True])
def test_sockets_lie_where_only_the_user_may_and_paths_are_short(monkeypatch, deep) -> None:
    with tempfile.TemporaryDirectory(prefix="t") as usual:
        folder = Path(usual) / ("deep" * 25) if deep else Path(usual)
        folder.mkdir(exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        made = private_folder()
        assert made.stat().st_mode & 0o777 == 0o700
        assert len(str(made / "workers.sock")) < 108
        assert (made.parent == folder) == (not deep)
        assert list(folder.iterdir()) == ([] if deep else [made])
        made.rmdir()
