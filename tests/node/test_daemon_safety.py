"""Who may speak to a node that stays: the owner of its cluster, and nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from agentsim.errors import LaunchError
from agentsim.launch.attach import AttachLauncher
from agentsim.launch.control import NoAnswer, Owner
from agentsim.launch.registry import StayingNode
from agentsim.logs import LogSettings
from agentsim.node.daemon import Daemon
from agentsim.rpc.certificates import Authority
from agentsim.rpc.channel import Client, serve
from agentsim.rpc.codec import encode
from agentsim.rpc.control import Join, NodeConfig
from agentsim.rpc.envelope import DATA, NODE, ORCHESTRATOR, PULSE, Envelope, Kind, WireError
from agentsim.rpc.identity import Identity
from agentsim.rpc.staying import CONTROL, Carried, EndNode, Here, NodeReport, Renew, Status, Stay


@dataclass(slots=True)
class Bed:
    """A node that stays, with certificates of `authority`."""

    daemon: Daemon
    node: StayingNode
    authority: Authority

    @property
    def owner(self) -> Owner:
        return Owner(self.authority)

    async def answers(self) -> bool:
        return await self.owner.tell(self.node, Here(), Carried) == Carried()


@pytest.fixture
async def bed(tmp_path: Path) -> AsyncIterator[Bed]:
    authority = Authority.create("lab")
    config = NodeConfig(
        address="127.0.0.1:0",
        folder=str(tmp_path),
        log_dir=str(tmp_path),
        identity=authority.issue("node", timedelta(days=2)),
        log=LogSettings(str(tmp_path / "node.log")),
        stay=Stay("lab", "here", 4, 3600.0),
    )
    daemon = Daemon(config)
    handlers = {DATA: daemon.data, PULSE: daemon.pulse, CONTROL: daemon.control}
    server = await serve(config.address, handlers, config.identity, renewed=daemon.identity)
    node = StayingNode("here", f"127.0.0.1:{server.port}", 1, "log", "folder", False, 4)
    yield Bed(daemon, node, authority)
    await daemon.stop()
    await server.stop(0)


async def refused(target: str, identity: Identity | None, stream: str) -> bool:
    """Whether a stream is not served: it breaks, and carries nothing."""
    client = Client(target, identity)
    try:
        link = await client.open(stream)
        async with asyncio.timeout(20):
            message = Join("one", 1, 1) if stream != CONTROL else EndNode()
            kind = Kind.JOIN if stream != CONTROL else Kind.COMMAND
            await link.send(Envelope(kind, NODE, ORCHESTRATOR, encode(message)))
            return await link.receive() is None
    except WireError:
        return True
    finally:
        await client.close()


@pytest.mark.parametrize("stream", [CONTROL, DATA, PULSE])
@pytest.mark.parametrize("who", ["nobody", "another cluster", "a node of the same cluster"])
async def test_a_stranger_gets_nothing_and_disturbs_nothing(
    bed: Bed, who: str, stream: str
) -> None:
    identity = {
        "nobody": None,
        "another cluster": Authority.create("lab").issue("orchestrator"),
        "a node of the same cluster": bed.authority.issue("node"),
    }[who]
    assert await refused(bed.node.target, identity, stream)
    assert not bed.daemon.ended.is_set()
    assert await bed.answers()


async def test_an_owner_of_another_cluster_is_told_that_nobody_answers(bed: Bed) -> None:
    other = Owner(Authority.create("other"))
    with pytest.raises(NoAnswer, match="the node of here does not answer"):
        await other.tell(bed.node, Status(), NodeReport)
    launcher = AttachLauncher([bed.node], Path("runs/x/logs"), cluster="other", owner=other)
    with pytest.raises(LaunchError, match="agentsim cluster status --name other"):
        await launcher.start("here", 0)
    assert (await bed.owner.tell(bed.node, Status(), NodeReport)).runs == []


async def test_bytes_of_a_bare_client_disturb_nothing(bed: Bed) -> None:
    host, _, port = bed.node.target.rpartition(":")
    for data in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 4096):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(data)
        writer.close()
        with_error = await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        assert all(error is None or isinstance(error, OSError) for error in with_error)
        reader.feed_eof()
    assert await bed.answers()


async def test_a_renewed_certificate_is_shown_from_then_on(bed: Bed) -> None:
    before = await bed.owner.tell(bed.node, Status(), NodeReport)
    await bed.owner.renew(bed.node)
    after = await bed.owner.tell(bed.node, Status(), NodeReport)
    gained = datetime.fromisoformat(after.certificate_until) - datetime.fromisoformat(
        before.certificate_until
    )
    assert gained > timedelta(days=5)


async def test_a_certificate_that_nobody_would_accept_is_not_taken(bed: Bed) -> None:
    foreign = Authority.create("lab").issue("node")
    with pytest.raises(LaunchError, match="not of this cluster"):
        await bed.owner.tell(bed.node, Renew(foreign), Carried)
    orchestrators = bed.authority.issue("orchestrator")
    with pytest.raises(LaunchError, match="not a node's"):
        await bed.owner.tell(bed.node, Renew(orchestrators), Carried)
    assert await bed.answers()


async def test_secrets_are_in_no_report(bed: Bed) -> None:
    report = await bed.owner.tell(bed.node, Status(), NodeReport)
    assert b"PRIVATE KEY" not in encode(report)
    assert "PRIVATE" not in repr(bed.authority.issue("node"))
