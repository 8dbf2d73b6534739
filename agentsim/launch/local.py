"""The local launcher: nodes as child processes of this one, reached over Unix sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from agentsim import children, logs
from agentsim.errors import LaunchError
from agentsim.launch.base import listening
from agentsim.rpc.control import NodeConfig
from agentsim.rpc.sockets import private_folder
from agentsim.rpc.staying import Stay

_READY_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class LocalNode:
    """A node on this machine."""

    host: str
    target: str
    log: str
    folder: Path
    process: asyncio.subprocess.Process
    identity: None = None
    index: int = 0
    run_id: str = ""

    async def wait(self) -> int:
        return await self.process.wait()

    async def stop(self, grace_s: float = 5.0) -> None:
        if self.process.returncode is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                await asyncio.wait_for(self.process.wait(), grace_s)
            except TimeoutError:
                self._kill()
                await self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _kill(self) -> None:
        # The node leads a session of its own, which its workers and model server are in.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class LocalLauncher:
    """Starts nodes on this machine.

    Attributes:
        log_dir: where nodes, workers and model servers log.
        api_keys: of model endpoints, by the name of their variable; handed to the nodes on their
            stdin.
        stay: makes them stay when a run has ended, for as long as this process lives; `host` is
            filled in.
        grpc: speak with them as with nodes of other machines.
    """

    log_dir: Path
    api_keys: Mapping[str, str] = field(default_factory=dict)
    stay: Stay | None = None
    grpc: bool = False

    async def start(self, host: str, index: int) -> LocalNode:
        """See `Launcher.start`."""
        folder = private_folder()
        log = self.log_dir / f"node-{index}.log"
        stay = self.stay and msgspec.structs.replace(self.stay, host=host)
        config = NodeConfig(
            address=f"{'unix:' if self.grpc else ''}{folder}/node.sock",
            folder=str(folder),
            log_dir=str(self.log_dir.absolute()),
            api_keys=dict(self.api_keys),
            log=logs.settings_for(log, host),
            stay=stay,
        )
        with log.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "agentsim.node"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                # Ctrl-C goes to the orchestrator alone, which ends the nodes in order.
                start_new_session=True,
            )
        node = LocalNode(host, config.address, str(log), folder, process, index=index)
        try:
            await _handshake(node, config)
        except BaseException:
            await asyncio.shield(node.stop(grace_s=1.0))
            raise
        return node


async def _handshake(node: LocalNode, config: NodeConfig) -> None:
    assert node.process.stdout is not None
    try:
        await children.tell(node.process, msgspec.json.encode(config) + b"\n")
        ready = await asyncio.wait_for(listening(node.process.stdout), _READY_TIMEOUT_S)
    except TimeoutError:
        raise LaunchError(
            f"the node of {node.host} was not ready within {_READY_TIMEOUT_S:.0f} s; see {node.log}"
        ) from None
    if ready is None:
        raise LaunchError(
            f"the node of {node.host} did not start (log: {node.log})" + end_of(node.log)
        )


def end_of(log: str) -> str:
    """The last lines of a log, indented, each on a line of its own."""
    return "".join(f"\n  {line}" for line in logs.tail(Path(log)))
