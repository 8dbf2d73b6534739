"""Runs a node that stays, from its settings to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal

import msgspec

from agentsim.node.daemon import Daemon
from agentsim.rpc import lifeline
from agentsim.rpc.control import Listening, NodeConfig
from agentsim.rpc.envelope import DATA, PULSE
from agentsim.rpc.staying import CONTROL
from agentsim.rpc.streams import serve
from agentsim.version import __version__

_log = logging.getLogger(__name__)
_GRACE_S = 10.0


async def stay(config: NodeConfig, *, far: bool) -> None:
    """Serve runs until the node is told to end, or has been idle for long enough.

    Without a lease its starter is its owner, and it ends with it. With one it lives on as soon as
    its starter says so.

    Args:
        far: whether it was started from another machine, and has made its folder itself.
    """
    daemon = Daemon(config)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, daemon.ended.set)

    def end() -> None:
        loop.call_soon_threadsafe(daemon.ended.set)

    if config.lease_s is None:
        lifeline.hold(end, grace_s=_GRACE_S, die_with_parent=False)
    else:
        lifeline.leave_terminal()
        lifeline.until_kept(end, grace_s=_GRACE_S)
    handlers = {DATA: daemon.data, PULSE: daemon.pulse, CONTROL: daemon.control}
    server = await serve(
        config.address,
        handlers,
        config.identity,
        renewed=daemon.identity if config.identity else None,
    )
    home = config.folder if far else ""
    listening = Listening(True, server.port, os.getpid(), __version__, home)
    _log.info("agentsim %s listens at %s", __version__, config.address)
    print(msgspec.json.encode(listening).decode(), flush=True)
    try:
        await daemon.ended.wait()
    finally:
        await daemon.stop()
        _log.info("this node has ended")
        # Before it falls silent: who ends a cluster takes silence for the end.
        shutil.rmtree(config.folder, ignore_errors=True)
        await server.stop(grace=0.5)
