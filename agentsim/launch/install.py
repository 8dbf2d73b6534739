"""Puts the agentsim that runs here on the hosts of a hostfile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from agentsim.config.hostfile import Host, Hostfile
from agentsim.errors import LaunchError, UserError
from agentsim.launch import far, remote
from agentsim.launch.connection import Connection
from agentsim.launch.far.probe import digest
from agentsim.launch.wheel import wheel
from agentsim.version import __version__

# Large packages over a slow line.
_INSTALL_S = 1800.0
_PYTHONS = ("python3.13", "python3.12", "python3.11", "python3")
_LINES = 5


class Said(msgspec.Struct, frozen=True):
    """What came of one host. See `far/install.py`; one of them is set.

    Attributes:
        did: what was done.
        would: what would be done.
        failed: why nothing was.
    """

    did: str = ""
    would: str = ""
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be installed, and how.

    Attributes:
        extras: optional parts, as pip names them.
        dry_run: only say what would be done.
    """

    extras: Sequence[str] = ()
    dry_run: bool = False


async def install(hostfile: Hostfile, order: Order, tell: Callable[[str], None]) -> None:
    """Install on all hosts, as many at a time as the hostfile says.

    Args:
        hostfile: of the ssh launcher.
        tell: is told a line for each host.

    Raises:
        UserError: the hostfile is another launcher's, or what runs here cannot be packed.
        LaunchError: it failed at some hosts; the message says at which, and why.
    """
    if hostfile.launcher != "ssh":
        raise UserError(f"the {hostfile.launcher} launcher runs what is installed here")
    packed = wheel()
    gate = asyncio.Semaphore(hostfile.ssh.parallel)

    async def one(host: Host) -> str:
        async with gate:
            said = await _install(Connection(hostfile.ssh, host), order, *packed)
        words = said.did and f"done: {said.did}"
        words = words or (said.would and f"would {said.would}")
        tell(f"{host.address}: {words or f'failed: {said.failed}'}")
        return said.failed

    failed = [found for found in await asyncio.gather(*map(one, hostfile.hosts)) if found]
    if failed:
        raise LaunchError(f"it failed at {len(failed)} of {len(hostfile.hosts)} hosts")


async def _install(connection: Connection, order: Order, name: str, packed: bytes) -> Said:
    host = connection.host
    extras = f"[{','.join(order.extras)}]" if order.extras else ""
    asked = {
        "venv": "" if host.python else remote.venv_folder(host),
        "wheel": name,
        "size": len(packed),
        "what": f"agentsim{extras} {__version__} and what it needs",
        "extras": extras,
        "stamp": f"{digest()}{extras}",
        "dry_run": order.dry_run,
    }
    async with connection.call(far.program("install", asked), _PYTHONS) as call:
        status: int | None = None
        try:
            async with asyncio.timeout(_INSTALL_S):
                await call.write(packed)
                said = await call.line()
                if said is None:
                    status = await call.status()
        except TimeoutError:
            said = None
        if said is None:
            return Said(failed=connection.problem(status, call.err()).what)
        answer = msgspec.json.decode(said, type=Said)
        if not answer.failed:
            return answer
        end = "".join(f"\n    {line}" for line in call.err().strip().splitlines()[-_LINES:])
        return Said(failed=answer.failed + end)
