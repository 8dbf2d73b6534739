"""The node: the only network peer of its machine."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path

import msgspec

from agentsim.errors import AgentsimError
from agentsim.node.models import Models
from agentsim.node.servers import Servers
from agentsim.node.workers import Workers
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.control import (
    Failure,
    ModelsReady,
    NodeConfig,
    NodeReady,
    NodeStart,
    Pulse,
    Recordings,
    ServeModels,
    Spawn,
)
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.links import Link

_log = logging.getLogger(__name__)
_PULSE_S = 1.0
# Messages for the orchestrator that wait here before workers are made to wait.
_OUTBOX = 64
# What workers may say, to the node, to the orchestrator and to each other.
_OF_WORKERS = {
    NODE: (Kind.REQUESTS,),
    ORCHESTRATOR: (Kind.ANSWERS, Kind.ATTEMPTS, Kind.ACTORS, Kind.FAILED),
    0: (Kind.ACTORS,),
}


class Node:
    """Starts what it is told to start, relays envelopes, and calls models for who asks.

    Args:
        config: what to do and where.
        servers: model servers that this machine's runs share; None: the run's own.
        run_id: what the run is called among them.
        admit: called with how many workers are about to start; raises when they may not.

    Attributes:
        ended: set when the node is to end: its stdin ended, or the orchestrator left.
    """

    def __init__(
        self,
        config: NodeConfig,
        *,
        servers: Servers | None = None,
        run_id: str = "",
        admit: Callable[[int], None] = lambda workers: None,
    ) -> None:
        self.ended = asyncio.Event()
        self._config = config
        self._host = ""
        self._outbox: asyncio.Queue[Envelope] = asyncio.Queue(_OUTBOX)
        folder, log_dir = Path(config.folder), Path(config.log_dir)
        self._workers = Workers(folder, log_dir, self._from_worker, self._worker_exited, admit)
        self._models = Models(
            self._deliver,
            log_dir=log_dir,
            api_keys=config.api_keys,
            servers=servers,
            user=run_id,
        )
        self._work: set[asyncio.Task[None]] = set()

    @property
    def workers(self) -> Workers:
        """For reports."""
        return self._workers

    @property
    def models(self) -> Models:
        """For reports."""
        return self._models

    async def data(self, link: Link) -> None:
        """Serve the orchestrator's data stream until it ends."""
        sender = asyncio.ensure_future(self._send_all(link))
        try:
            while (envelope := await link.receive()) is not None:
                if envelope.to == NODE:
                    self._take(envelope)
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

    def _take(self, envelope: Envelope) -> None:
        """Deal with a message for the node itself, without waiting for what it begins."""
        match envelope.kind:
            case Kind.START:
                start = decode(envelope.body, NodeStart)
                self._host = start.host
                self._begin(self._start(start))
            case Kind.SERVE:
                self._begin(self._serve(decode(envelope.body, ServeModels)))
            case Kind.REQUESTS:
                self._models.submit(envelope)
            case Kind.RECORDINGS:
                self._models.record(decode(envelope.body, Recordings))
            case Kind.SPAWN:
                self._begin(self._workers.start(decode(envelope.body, Spawn).workers))
            case Kind.END:
                for worker in decode(envelope.body, Spawn).workers:
                    self._workers.end(worker)
            case _:
                raise WireError(f"a node has no use for a message of kind {envelope.kind.name}")

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        """Do something beside; when it fails the orchestrator is told."""
        task = asyncio.ensure_future(self._told(work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _told(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except AgentsimError as error:
            await self.fail(type(error).__name__, f"{self._host}: {error}")
        except Exception as error:  # noqa: BLE001 - it must reach the user, not a log alone
            await self.fail("Bug", f"{self._host}: {error!r}", traceback.format_exc())

    async def _start(self, start: NodeStart) -> None:
        """Start workers and model servers side by side; say READY."""
        workers = asyncio.ensure_future(self._workers.start(_indices(start)))
        models = asyncio.ensure_future(self._models.serve(start.models))
        try:
            _, served = await asyncio.gather(workers, models)
        finally:
            workers.cancel()
            models.cancel()
        await self._say(Kind.READY, NodeReady(self._workers.pids, served))

    async def _serve(self, wanted: ServeModels) -> None:
        """Change the models; say SERVING."""
        await self._say(Kind.SERVING, ModelsReady(await self._models.serve(wanted.models)))

    async def _deliver(self, envelope: Envelope) -> None:
        """Pass an envelope to whom it is for."""
        if envelope.to == ORCHESTRATOR:
            await self._outbox.put(envelope)
        else:
            await self._workers.send(envelope)

    async def _from_worker(self, envelope: Envelope) -> None:
        allowed = _OF_WORKERS[min(envelope.to, 0)] if envelope.to >= NODE else ()
        if envelope.kind not in allowed:
            kind, to, sender = envelope.kind.name, envelope.to, envelope.sender
            _log.warning("refused a message of kind %s of worker %d to %d", kind, sender, to)
        elif envelope.to == NODE:
            try:
                self._models.submit(envelope)
            except msgspec.DecodeError as error:
                _log.warning("refused requests of worker %d: %s", envelope.sender, error)
        elif self._workers.has(envelope.to):
            await self._workers.send(envelope)
        else:
            await self._outbox.put(envelope)

    def _worker_exited(self, worker: int, status: int, log: Path) -> None:
        how = f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"
        message = f"worker {worker} on {self._host} {how}; its log: {log}"
        _log.error("%s", message)
        failure = Failure("PeerLost", message, workers=[worker])
        self._begin(self._say(Kind.FAILED, failure))

    async def fail(self, kind: str, message: str, trace: str = "") -> None:
        """Tell the orchestrator of something that ends the run; `kind` is an error's class."""
        await self._say(Kind.FAILED, Failure(kind, message, trace))

    async def _say(self, kind: Kind, message: object) -> None:
        await self._outbox.put(Envelope(kind, ORCHESTRATOR, NODE, encode(message)))

    async def _send_all(self, link: Link) -> None:
        try:
            while True:
                await link.send(await self._outbox.get())
        except WireError:
            self.ended.set()


def _indices(start: NodeStart) -> range:
    return range(start.first_worker, start.first_worker + start.workers)
