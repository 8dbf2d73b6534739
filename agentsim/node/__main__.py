"""`python -m agentsim.node`: settings on stdin, a ready line on stdout, streams until it ends.

It ends when the orchestrator says so, on SIGTERM, and when its stdin ends; with a lease, when that
has run out, and then neither stdin nor the terminal that started it matters. One that was started
from another machine needs its stdin until its starter has said that it knows of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys

import msgspec
import uvloop

from agentsim import logs
from agentsim.node.door import Door, OnlyRun
from agentsim.node.home import COPIED_S, settle
from agentsim.node.node import Node
from agentsim.node.staying import stay
from agentsim.rpc import lifeline
from agentsim.rpc.control import Listening, NodeConfig
from agentsim.rpc.envelope import DATA, PULSE, WireError
from agentsim.rpc.streams import serve
from agentsim.version import __version__

_log = logging.getLogger(__name__)


async def _main(config: NodeConfig, *, far: bool) -> None:
    node = Node(config)
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.call_soon_threadsafe(node.ended.set)

    def forsaken() -> None:
        node.forsaken = True
        end()

    loop.add_signal_handler(signal.SIGTERM, node.ended.set)
    if config.lease_s is None:
        lifeline.hold(end, grace_s=10.0, die_with_parent=False)
    else:
        lifeline.leave_terminal()
        if far:
            lifeline.until_kept(forsaken, grace_s=10.0)
    door = Door(OnlyRun(node))
    handlers = {DATA: door.data, PULSE: door.pulse}
    try:
        server = await serve(config.address, handlers, config.identity)
    except WireError as error:
        _log.error("%s", error)
        if far:
            await asyncio.sleep(COPIED_S)
            shutil.rmtree(config.folder, ignore_errors=True)
        sys.exit(1)
    home = config.folder if far else ""
    listening = Listening(True, server.port, os.getpid(), __version__, home)
    with contextlib.suppress(OSError):  # nobody is there any more
        print(msgspec.json.encode(listening).decode(), flush=True)
    try:
        await node.ended.wait()
    finally:
        await node.stop()
        await server.stop(grace=0.5)
        # Who has started it from elsewhere takes the logs, and then the folder away.
        if not far or node.forsaken:
            shutil.rmtree(config.folder, ignore_errors=True)


if __name__ == "__main__":
    settings = msgspec.json.decode(lifeline.first_line(), type=NodeConfig)
    logs.hide(settings.api_keys.values())
    far = not settings.folder
    if far:
        settings = settle(settings)
    logs.begin(settings.log, "node")
    main = _main if settings.stay is None else stay
    uvloop.run(main(settings, far=far))
