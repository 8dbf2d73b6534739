"""The node: the only network peer of its machine."""

from __future__ import annotations

import asyncio
import logging
import traceback
from pathlib import Path

from agentsim.errors import AgentsimError
from agentsim.node.models import Endpoints, Models
from agentsim.node.workers import Workers
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.control import Failure, NodeConfig, NodeReady, NodeStart, Pulse
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.links import Link

_log = logging.getLogger(__name__)
_PULSE_S = 1.0
# Messages for the orchestrator that wait here before workers are made to wait.
_OUTBOX = 64


class Node:
    """Starts what it is told to start, relays envelopes, and calls models for its workers.

    Attributes:
        ended: set when the node is to end: its stdin ended, or the orchestrator left.
    """

    def __init__(self, config: NodeConfig) -> None:
        self.ended = asyncio.Event()
        self._config = config
        self._host = ""
        self._outbox: asyncio.Queue[Envelope] = asyncio.Queue(_OUTBOX)
        self._workers = Workers(
            Path(config.folder), Path(config.log_dir), self._from_worker, self._worker_exited
        )
        self._models = Models(self._workers.send)
        self._work: set[asyncio.Task[None]] = set()

    async def data(self, link: Link) -> None:
        """Serve the orchestrator's data stream until it ends."""
        sender = asyncio.ensure_future(self._send_all(link))
        try:
            while (envelope := await link.receive()) is not None:
                if envelope.kind is Kind.START:
                    self._begin(envelope)
                else:
                    await self._workers.send(envelope)
        except WireError as error:
            _log.info("the orchestrator's stream ended: %s", error)
        finally:
            sender.cancel()
            self.ended.set()

    async def pulse(self, link: Link) -> None:
        """Send a pulse each second until the orchestrator has left."""
        try:
            while not self.ended.is_set():
                in_flight, tokens = self._models.load()
                pulse = Pulse(self._workers.silent_s(), in_flight, tokens)
                await link.send(Envelope(Kind.PULSE, ORCHESTRATOR, NODE, encode(pulse)))
                await asyncio.sleep(_PULSE_S)
        except WireError:
            pass

    async def stop(self) -> None:
        """End workers, calls and the model server."""
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await asyncio.gather(self._workers.stop(), self._models.stop())

    def _begin(self, envelope: Envelope) -> None:
        task = asyncio.ensure_future(self._start(decode(envelope.body, NodeStart)))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _start(self, start: NodeStart) -> None:
        """Start workers and model server side by side; say READY or FAILED."""
        self._host = start.host
        try:
            workers = asyncio.ensure_future(self._workers.start(start.first_worker, start.workers))
            models = asyncio.ensure_future(self._start_models(start.model))
            try:
                _, endpoints = await asyncio.gather(workers, models)
            finally:
                workers.cancel()
                models.cancel()
        except AgentsimError as error:
            await self._fail(type(error).__name__, f"{start.host}: {error}")
            return
        except Exception as error:  # noqa: BLE001 - it must reach the user, not a log alone
            await self._fail("Bug", f"{start.host}: {error!r}", traceback.format_exc())
            return
        ready = NodeReady(
            self._workers.pids, endpoints.structured, endpoints.urls, endpoints.in_flight
        )
        await self._outbox.put(Envelope(Kind.READY, ORCHESTRATOR, NODE, encode(ready)))

    async def _start_models(self, model: str | None) -> Endpoints:
        if model is None:
            return Endpoints([], structured=False, in_flight=0)
        return await self._models.start(
            model, log_dir=Path(self._config.log_dir), api_key=self._config.api_key
        )

    async def _from_worker(self, envelope: Envelope) -> None:
        if envelope.to == NODE:
            self._models.submit(envelope)
        else:
            await self._outbox.put(envelope)

    def _worker_exited(self, worker: int, status: int, log: Path) -> None:
        how = f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"
        message = f"worker {worker} on {self._host} {how}; its log: {log}"
        _log.error("%s", message)
        task = asyncio.ensure_future(self._fail("PeerLost", message))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _fail(self, kind: str, message: str, trace: str = "") -> None:
        failure = Failure(kind, message, trace)
        await self._outbox.put(Envelope(Kind.FAILED, ORCHESTRATOR, NODE, encode(failure)))

    async def _send_all(self, link: Link) -> None:
        try:
            while True:
                await link.send(await self._outbox.get())
        except WireError:
            self.ended.set()
