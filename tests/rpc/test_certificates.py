"""Who has no certificate of the same authority gets nothing, and disturbs nobody."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from cryptography import x509

from agentsim.rpc.certificates import Authority
from agentsim.rpc.channel import Client, Server, serve
from agentsim.rpc.control import NodeConfig
from agentsim.rpc.envelope import DATA, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.identity import Identity
from agentsim.rpc.links import Link

OURS = Authority.create("ours")
MESSAGE = Envelope(Kind.ANSWERS, ORCHESTRATOR, 0, b"hello")


@asynccontextmanager
async def echoing(identity: Identity, address: str = "127.0.0.1:0") -> AsyncIterator[Server]:
    async def echo(link: Link) -> None:
        while (envelope := await link.receive()) is not None:
            await link.send(envelope)

    server = await serve(address, {DATA: echo}, identity)
    try:
        yield server
    finally:
        await server.stop(0)


@asynccontextmanager
async def connected(port: int, identity: Identity | None) -> AsyncIterator[Link]:
    client = Client(f"127.0.0.1:{port}", identity)
    link = await client.open(DATA)
    try:
        yield link
    finally:
        await link.close()
        await client.close()


async def echoed(link: Link) -> bytes:
    await link.send(MESSAGE)
    envelope = await asyncio.wait_for(link.receive(), 20)
    assert envelope is not None
    return envelope.body


STRANGERS: dict[str, Callable[[], Identity | None]] = {
    "nothing to show": lambda: None,
    "another cluster's certificate": lambda: Authority.create("ours").issue("orchestrator"),
    "a certificate signed by itself": lambda: signed_by_itself(),
    "a certificate of another node": lambda: OURS.issue("node"),
    "a certificate that has ended": lambda: OURS.issue("orchestrator", timedelta(seconds=-5)),
}


def signed_by_itself() -> Identity:
    other = Authority.create("ours")
    return Identity(OURS.certificate, other.certificate, other.key)


@pytest.mark.parametrize("shows", STRANGERS)
async def test_a_stranger_gets_nothing_and_disturbs_nobody(shows: str) -> None:
    async with (
        echoing(OURS.issue("node")) as server,
        connected(server.port, OURS.issue("orchestrator")) as link,
    ):
        assert await echoed(link) == b"hello"
        async with connected(server.port, STRANGERS[shows]()) as stranger:
            with pytest.raises(WireError):
                await echoed(stranger)
        assert await echoed(link) == b"hello"


async def test_a_node_of_another_cluster_is_not_spoken_to() -> None:
    other = Authority.create("theirs")
    async with (
        echoing(other.issue("node")) as server,
        connected(server.port, OURS.issue("orchestrator")) as link,
    ):
        with pytest.raises(WireError):
            await echoed(link)


async def test_an_orchestrator_cannot_pass_for_a_node() -> None:
    async with (
        echoing(OURS.issue("orchestrator")) as server,
        connected(server.port, OURS.issue("orchestrator")) as link,
    ):
        with pytest.raises(WireError):
            await echoed(link)


@pytest.mark.parametrize(
    "says", [b"", b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0" * 100_000]
)
async def test_a_bare_connection_gets_nothing_and_disturbs_nobody(says: bytes) -> None:
    async with (
        echoing(OURS.issue("node")) as server,
        connected(server.port, OURS.issue("orchestrator")) as link,
    ):
        connections = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(20)]
        for _, writer in connections:
            writer.write(says)
        assert await echoed(link) == b"hello"
        for reader, writer in connections:
            if says:  # it is let go with an alert of TLS at most
                with suppress(ConnectionError):
                    assert len(await asyncio.wait_for(reader.read(), 20)) < 10
            writer.close()
        assert await echoed(link) == b"hello"


_AS_ANOTHER_USER = """
import os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError:
    print("refused")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_of_the_host_gets_nothing(tmp_path) -> None:
    tmp_path.chmod(0o700)
    path = tmp_path / "node.sock"
    async with echoing(OURS.issue("node"), f"unix:{path}"):
        tried = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-I", "-S", "-c", _AS_ANOTHER_USER, path],
            capture_output=True,
            text=True,
            check=True,
        )
    assert tried.stdout == "refused\n"


async def test_of_a_range_the_first_free_port_is_taken() -> None:
    async with echoing(OURS.issue("node")) as taken:
        first = taken.port
        if first > 65_000:
            pytest.skip("the system gave a port at the end of all")
        ports = f"127.0.0.1:{first}-{first + 50}"
        async with echoing(OURS.issue("node"), ports) as server:
            assert first < server.port <= first + 50
            async with connected(server.port, OURS.issue("orchestrator")) as link:
                assert await echoed(link) == b"hello"


async def test_a_port_that_is_taken_is_an_error() -> None:
    async with echoing(OURS.issue("node")) as taken:
        with pytest.raises(WireError, match="cannot listen on"):
            async with echoing(OURS.issue("node"), f"127.0.0.1:{taken.port}"):
                pass


async def test_a_renewed_identity_serves_new_connections() -> None:
    now = [OURS.issue("node", timedelta(seconds=-5))]

    async def greet(link: Link) -> None:
        await link.send(MESSAGE)
        await link.receive()

    server = await serve("127.0.0.1:0", {DATA: greet}, now[0], renewed=lambda: now[0])
    async with connected(server.port, OURS.issue("orchestrator")) as link:
        with pytest.raises(WireError):
            await asyncio.wait_for(link.receive(), 20)
    now[0] = OURS.issue("node")
    async with connected(server.port, OURS.issue("orchestrator")) as link:
        assert (await asyncio.wait_for(link.receive(), 20)) == MESSAGE
    await server.stop(0)


def test_certificates_are_valid_on_hosts_whose_clock_is_behind() -> None:
    certificate = x509.load_pem_x509_certificate(OURS.issue("node").certificate)
    now = datetime.now(UTC)
    assert certificate.not_valid_before_utc < now - timedelta(hours=23)
    assert certificate.not_valid_after_utc > now + timedelta(days=3)


def test_an_authority_can_be_kept() -> None:
    again = Authority.load(OURS.certificate, OURS.key)
    assert again.issue("node").ca == OURS.certificate


def test_an_identity_travels_and_its_key_is_not_shown() -> None:
    config = NodeConfig("127.0.0.1:0", "", "", identity=OURS.issue("node"))
    line = msgspec.json.encode(config)
    assert b"\n" not in line
    assert msgspec.json.decode(line, type=NodeConfig).identity == config.identity
    assert "PRIVATE" not in f"{config!r} {config} {OURS!r}"
