"""`python -m agentsim.node`: settings on stdin, a ready line on stdout, gRPC until stdin ends."""

from __future__ import annotations

import asyncio
import os
import shutil

import msgspec
import uvloop

from agentsim import logs
from agentsim.node.node import Node
from agentsim.node.staying import stay
from agentsim.rpc import lifeline
from agentsim.rpc.channel import serve
from agentsim.rpc.control import Listening, NodeConfig
from agentsim.rpc.envelope import DATA, PULSE
from agentsim.version import __version__


async def _main(config: NodeConfig) -> None:
    node = Node(config)
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.call_soon_threadsafe(node.ended.set)

    lifeline.hold(end, grace_s=10.0, die_with_parent=False)
    handlers = {DATA: node.data, PULSE: node.pulse}
    server = await serve(config.address, handlers, config.identity)
    listening = Listening(True, server.port, os.getpid(), __version__)
    print(msgspec.json.encode(listening).decode(), flush=True)
    try:
        await node.ended.wait()
    finally:
        await node.stop()
        await server.stop(grace=0.5)
        shutil.rmtree(config.folder, ignore_errors=True)


if __name__ == "__main__":
    settings = msgspec.json.decode(lifeline.first_line(), type=NodeConfig)
    logs.hide(settings.api_keys.values())
    logs.begin(settings.log, "node")
    uvloop.run(_main(settings) if settings.stay is None else stay(settings))
