"""`python -m agentsim.worker`: configuration on stdin, then the node's socket until stdin ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import traceback
from pathlib import Path

import msgspec
import uvloop

from agentsim import logs
from agentsim.rpc import lifeline
from agentsim.rpc.codec import encode
from agentsim.rpc.control import Failure, Hello, Pulse, WorkerConfig
from agentsim.rpc.envelope import DATA, NODE, ORCHESTRATOR, PULSE, Envelope, Kind, WireError
from agentsim.rpc.links import StreamLink, connect_unix
from agentsim.worker.host import Host

_PULSE_S = 0.5
# Messages that wait for the socket before the host's loop is made to wait.
_OUTBOX = 256


async def _main(config: WorkerConfig, log: logs.Log) -> None:
    data = await _open(config, DATA)
    pulse = await _open(config, PULSE)
    outbox: asyncio.Queue[Envelope] = asyncio.Queue(_OUTBOX)
    folder = Path(config.socket).parent / f"modules-{config.worker}"
    host = Host(config.worker, outbox.put, folder)
    tasks = [
        asyncio.ensure_future(work)
        for work in (
            _receive(data, host),
            _send(data, outbox),
            _beat(pulse, host, config.worker, log),
            host.play(),
        )
    ]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    except WireError:
        pass  # the node is gone, and with it the reason to live
    except Exception as error:
        logging.exception("worker %d failed", config.worker)
        failure = Failure("Bug", f"worker {config.worker}: {error!r}", traceback.format_exc())
        with contextlib.suppress(WireError):
            await data.send(Envelope(Kind.FAILED, ORCHESTRATOR, config.worker, encode(failure)))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await data.close()
        await pulse.close()


async def _open(config: WorkerConfig, stream: str) -> StreamLink:
    link = await connect_unix(config.socket)
    hello = Hello(config.worker, os.getpid(), stream, config.token)
    await link.send(Envelope(Kind.HELLO, NODE, config.worker, encode(hello)))
    return link


async def _receive(link: StreamLink, host: Host) -> None:
    while (envelope := await link.receive()) is not None:
        host.receive(envelope)


async def _send(link: StreamLink, outbox: asyncio.Queue[Envelope]) -> None:
    while True:
        await link.send(await outbox.get())


async def _beat(link: StreamLink, host: Host, worker: int, log: logs.Log) -> None:
    while True:
        log.bound()
        pulse = Pulse(agents=host.agents)
        await link.send(Envelope(Kind.PULSE, NODE, worker, encode(pulse)))
        await asyncio.sleep(_PULSE_S)


if __name__ == "__main__":
    settings = msgspec.json.decode(lifeline.first_line(), type=WorkerConfig)
    logs.forgive_prints()
    lifeline.hold(lambda: None, grace_s=0.0, die_with_parent=True)
    uvloop.run(_main(settings, logs.begin(settings.log, "worker", settings.worker)))
