"""The ssh launcher: nodes on other machines, started by the system's `ssh`."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agentsim import children, logs
from agentsim.config.hostfile import Host, Hostfile
from agentsim.errors import LaunchError
from agentsim.launch import far
from agentsim.launch.base import UNKNOWN_STATUS, listening
from agentsim.launch.connection import Connection, kill
from agentsim.launch.tunnel import Tunnel
from agentsim.rpc import lifeline
from agentsim.rpc.certificates import Authority
from agentsim.rpc.control import Listening, NodeConfig, log_name
from agentsim.rpc.identity import Identity
from agentsim.rpc.lifeline import KEEP
from agentsim.rpc.staying import Stay
from agentsim.version import __version__

_log = logging.getLogger(__name__)
# Seconds that a node goes on without its orchestrator.
_LEASE_S = 60.0
_READY_S = 60.0
_FAREWELL_S = 30.0
# Some ssh servers keep a connection while any stream of it is open.
_KEPT_S = 3.0
_LOG_BYTES = 8 * 2**20
_WATCH_PAUSE_S = 5.0
_PROGRAM = ["-P", "-m", "agentsim.node"]


@dataclass(slots=True)
class SshNode:
    """A node on another machine."""

    host: str
    target: str
    log: str
    identity: Identity
    connection: Connection
    process: asyncio.subprocess.Process
    gate: asyncio.Semaphore
    said: Listening
    tunnel: Tunnel | None = None
    run_id: str = ""
    _watching: asyncio.Task[int] | None = None
    _stopping: asyncio.Task[None] | None = None

    async def wait(self) -> int:
        """See `NodeHandle.wait`. That a client of ssh has ended does not mean that the node has:
        then the host is asked."""
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())
        return await asyncio.shield(self._watching)

    async def stop(self, grace_s: float = 5.0) -> None:
        """See `NodeHandle.stop`. The logs come here, and the node's folder there goes away."""
        if self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(grace_s))
        await asyncio.shield(self._stopping)

    async def keep(self) -> None:
        """Let a node that stays go on by itself; `ssh` is not needed any more."""
        await children.tell(self.process, lifeline.KEEP)
        assert self.process.stdout is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.stdout.read(), _KEPT_S)  # it lets go of it
        kill(self.process)
        await self.process.wait()

    async def _stop(self, grace_s: float) -> None:
        if self._watching is not None:
            self._watching.cancel()
        try:
            async with self.gate, asyncio.timeout(grace_s + _FAREWELL_S):
                await self._farewell(grace_s)
        except TimeoutError:
            _log.warning("%s did not answer to the end of its node", self.host)
        finally:
            assert self.process.stdin is not None
            self.process.stdin.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), 1.0)
            kill(self.process)
            await self.process.wait()
            if self.tunnel is not None:
                await self.tunnel.close()

    async def _farewell(self, grace_s: float) -> None:
        asked = {
            "pid": self.said.pid,
            "folder": self.said.folder,
            "grace_s": grace_s,
            "most_bytes": _LOG_BYTES,
        }
        async with self.connection.call(far.program("farewell", asked)) as call:
            archive = await call.read()
            status = await call.status()
            if archive is None:
                problem = self.connection.problem(status, call.err())
                _log.warning("%s could not end its node: %s", self.host, problem.what)
                return
        try:
            _unpack(archive, Path(self.log))
        except OSError as error:  # no room, or nowhere: no reason not to end in order
            _log.warning("the logs of %s could not be kept: %s", self.host, error)

    async def _watch(self) -> int:
        status = await self.process.wait()
        if 0 <= status < UNKNOWN_STATUS:
            return status
        _log.warning("the ssh client of %s has ended; its node is looked after anew", self.host)
        asked = {"pid": self.said.pid}
        while True:
            async with self.connection.call(far.program("watch", asked)) as call:
                if await call.line() is not None:
                    return UNKNOWN_STATUS
            await asyncio.sleep(_WATCH_PAUSE_S)


class SshLauncher:
    """Starts nodes on the hosts of a hostfile.

    Args:
        hostfile: of the run.
        log_dir: where the logs of nodes, workers and model servers come to.
        api_keys: of model endpoints, by the name of their variable; handed to the nodes on their
            stdin.
        authority: signs the certificates; None: one of this launcher's own.
        stay: gives the terms on which a host's node stays, once it is told to (`SshNode.keep`);
            None: nodes end with their run.
    """

    def __init__(
        self,
        hostfile: Hostfile,
        log_dir: Path,
        api_keys: Mapping[str, str],
        *,
        authority: Authority | None = None,
        stay: Callable[[Host], Stay] | None = None,
    ) -> None:
        self._hostfile = hostfile
        self._log_dir = log_dir
        self._api_keys = dict(api_keys)
        self._authority = authority or Authority.create("run")
        self._stay = stay
        self._gate = asyncio.Semaphore(hostfile.ssh.parallel)

    async def start(self, host: str, index: int) -> SshNode:
        """See `Launcher.start`."""
        connection = Connection(self._hostfile.ssh, self._hostfile.hosts[index])
        async with self._gate:
            node = await self._begin(connection, index)
        try:
            await self._connect(node)
        except BaseException:
            await asyncio.shield(node.stop(grace_s=1.0))
            raise
        return node

    async def _begin(self, connection: Connection, index: int) -> SshNode:
        """Start a node and wait until it listens."""
        host = connection.host.address
        log = self._log_dir / f"node-{index}.log"
        with log.open("ab") as stderr:
            process = await connection.begin(stderr)
        try:
            said = await self._handshake(connection, process, log)
        except BaseException:
            # It has said nothing of itself; what was begun ends with its stdin.
            assert process.stdin is not None
            process.stdin.close()
            kill(process)
            await asyncio.shield(process.wait())
            raise
        if self._stay is None:  # from now on it is ended by its number, and by its lease
            await children.tell(process, KEEP)
        identity = self._authority.issue("orchestrator")
        gate = self._gate
        return SshNode(host, "", str(log), identity, connection, process, gate, said)

    async def _handshake(
        self, connection: Connection, process: asyncio.subprocess.Process, log: Path
    ) -> Listening:
        assert process.stdout is not None
        host = connection.host.address
        stay = self._stay and self._stay(connection.host)
        config = NodeConfig(
            address="unix:" if self._tunnelled else f"[::]:{connection.host.port}",
            folder="",
            log_dir="",
            api_keys=self._api_keys,
            log=logs.settings_for(log, host),
            identity=self._authority.issue("node"),
            lease_s=_LEASE_S if stay is None else stay.idle_s,
            stay=stay,
        )
        timeout_s = self._hostfile.ssh.connect_timeout_s + _READY_S
        try:
            async with asyncio.timeout(timeout_s):
                order = connection.stdin(_PROGRAM) + msgspec.json.encode(config) + b"\n"
                await children.tell(process, order)
                said = await listening(process.stdout)
                status = await process.wait() if said is None else 0
        except TimeoutError:
            raise LaunchError(
                f"the node of {host} was not ready within {timeout_s:.0f} s" + _end_of(log)
            ) from None
        if said is None:
            what = connection.problem(status, _text(log)).what
            raise LaunchError(f"the node of {host} did not start: {what}" + _end_of(log))
        if said.version != __version__:
            raise LaunchError(f"agentsim on {host} is {said.version}, here it is {__version__}")
        return said

    async def _connect(self, node: SshNode) -> None:
        """Find the way to a node that listens."""
        if not self._tunnelled:
            address = await node.connection.reached_at()
            node.target = (
                f"[{address}]:{node.said.port}"
                if ":" in address
                else (f"{address}:{node.said.port}")
            )
            return
        node.tunnel = Tunnel(node.connection, f"{node.said.folder}/node.sock", Path(node.log))
        async with self._gate:
            await node.tunnel.open(self._hostfile.ssh.connect_timeout_s)
        node.target = node.tunnel.target

    @property
    def _tunnelled(self) -> bool:
        return self._hostfile.transport == "tunnel"


def _unpack(archive: bytes, log: Path) -> None:
    """Put the logs of a host beside the one that its node has here."""
    with (
        contextlib.suppress(tarfile.TarError),
        tarfile.open(fileobj=io.BytesIO(archive), mode="r|") as files,
    ):
        for entry in files:
            name = Path(entry.name).name
            file = files.extractfile(entry) if entry.isfile() else None
            if file is None or not name:
                continue
            log.with_name(log_name(log.stem, name)).write_bytes(file.read())


def _text(log: Path) -> str:
    with contextlib.suppress(OSError):
        return log.read_text(errors="replace")[-65536:]
    return ""


def _end_of(log: Path) -> str:
    """The last lines of a log, indented, each on a line of its own."""
    return f" (log: {log})" + "".join(f"\n  {line}" for line in logs.tail(log))
