"""A tunnel to a node through ssh, made again whenever it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import ssl
from pathlib import Path

from agentsim.errors import LaunchError
from agentsim.launch.connection import Connection, kill
from agentsim.rpc.identity import NODE_NAME
from agentsim.rpc.sockets import private_folder

_log = logging.getLogger(__name__)
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 5.0


class Tunnel:
    """From a Unix socket here to a node's on its host.

    Args:
        connection: to the host.
        far: path of the socket there.
        log: where ssh's own messages go.
    """

    def __init__(self, connection: Connection, far: str, log: Path) -> None:
        self._connection = connection
        self._folder = private_folder()
        self._near = self._folder / "node.sock"
        self._forward = f"{self._near}:{far}"
        self._log = log
        self._process: asyncio.subprocess.Process | None = None
        self._keeping: asyncio.Task[None] | None = None

    @property
    def target(self) -> str:
        """Its end here, as a gRPC target."""
        return f"unix:{self._near}"

    async def open(self, timeout_s: float) -> None:
        """Open it, and keep it open until `close`.

        Raises:
            LaunchError: it does not open.
        """
        process = await self._begin()
        try:
            async with asyncio.timeout(timeout_s):
                while not self._near.exists():
                    if process.returncode is not None:
                        break
                    await asyncio.sleep(0.02)
        except TimeoutError:
            pass
        host = self._connection.host.address
        if not self._near.exists():
            kill(process)
            raise LaunchError(f"the tunnel to {host} does not open; ssh says why in {self._log}")
        if not await self._leads_somewhere(timeout_s):
            kill(process)
            raise LaunchError(
                f"the ssh server of {host} lets no tunnel through; AllowStreamLocalForwarding and "
                "DisableForwarding of its configuration say so. Without it, open a port and say "
                "`transport: direct`"
            )
        self._keeping = asyncio.ensure_future(self._keep(process))

    async def _leads_somewhere(self, timeout_s: float) -> bool:
        """Whether a server of TLS answers; ssh takes connections for which there is no way."""
        hello, context = ssl.MemoryBIO(), ssl.create_default_context()
        handshake = context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname=NODE_NAME)
        with contextlib.suppress(ssl.SSLWantReadError):
            handshake.do_handshake()
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_unix_connection(self._near)
                writer.write(hello.read())
                found = await reader.read(1)
                writer.close()
        except (OSError, TimeoutError):
            return False
        return bool(found)

    async def close(self) -> None:
        """Close it; harmless when it was never open."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        if self._process is not None:
            kill(self._process)
            await self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _begin(self) -> asyncio.subprocess.Process:
        with self._log.open("ab") as log:
            self._process = await self._connection.begin(log, forward=self._forward)
        return self._process

    async def _keep(self, process: asyncio.subprocess.Process) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            began_s = asyncio.get_running_loop().time()
            status = await process.wait()
            _log.warning("the tunnel to %s ended (%d)", self._connection.host.address, status)
            if asyncio.get_running_loop().time() - began_s > _LONGEST_PAUSE_S:
                pause_s = _FIRST_PAUSE_S
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            with contextlib.suppress(OSError):
                process = await self._begin()
