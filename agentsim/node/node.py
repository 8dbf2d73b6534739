"""The node: the only network peer of its machine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path

import msgspec

from agentsim.config.models import AnsweringModel
from agentsim.errors import AgentsimError, LaunchError
from agentsim.node.door import RefusedError
from agentsim.node.home import where_logs_come
from agentsim.node.models import Models
from agentsim.node.servers import Servers
from agentsim.node.workers import Workers
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.control import (
    Failure,
    Join,
    Joined,
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
from agentsim.rpc.lifeline import Lease
from agentsim.rpc.links import Link
from agentsim.rpc.resumable import Resumable

_log = logging.getLogger(__name__)
_PULSE_S = 0.5
# What workers may say, to the node, to the orchestrator and to each other.
_OF_WORKERS = {
    NODE: (Kind.REQUESTS,),
    ORCHESTRATOR: (Kind.ANSWERS, Kind.ATTEMPTS, Kind.ACTORS, Kind.FAILED),
    0: (Kind.ACTORS,),
}


class Node:
    """Starts what it is told to start, relays envelopes, and calls models for who asks.

    It belongs to one run. Its orchestrator's streams come from a `Door`, which has read who they
    are for; they may break and come again, and nothing is lost while the node lives.

    Args:
        config: what to do and where.
        servers: model servers that this machine's runs share; None: the run's own.
        run_id: what the run is called among them.
        admit: called with how many workers are about to start; raises when they may not.
        locate: gives a model whose files are named as this process finds them.

    Attributes:
        ended: set when the node is to end: it was told to, or its lease has run out.
        lease: held while the orchestrator is connected.
        forsaken: whether nobody is left who would take its logs: its lease has run out, or its
            starter has gone before it knew of it.
    """

    def __init__(
        self,
        config: NodeConfig,
        *,
        servers: Servers | None = None,
        run_id: str = "",
        admit: Callable[[int], None] = lambda workers: None,
        locate: Callable[[AnsweringModel], AnsweringModel] = lambda spec: spec,
    ) -> None:
        self.ended = asyncio.Event()
        self.lease = Lease(config.lease_s)
        self.forsaken = False
        self._config = config
        self._host = ""
        # What is said to the orchestrator: when too much waits for it, workers are made to wait.
        self._wire = Resumable(on_arrival=self._at_once)
        self._connection = 0
        self._joining = asyncio.Lock()
        folder, log_dir = Path(config.folder), Path(config.log_dir)
        self._workers = Workers(folder, log_dir, self._from_worker, self._worker_exited, admit)
        self._models = Models(
            self._deliver,
            log_dir=log_dir,
            api_keys=config.api_keys,
            servers=servers,
            user=run_id,
            locate=locate,
        )
        self._work: set[asyncio.Task[None]] = set()
        self._begin(self._receive())
        self._begin(self._watch_lease())

    @property
    def workers(self) -> Workers:
        """For reports."""
        return self._workers

    @property
    def models(self) -> Models:
        """For reports."""
        return self._models

    async def data(self, link: Link, join: Join) -> None:
        """Go on with the orchestrator over this stream, until it breaks.

        Raises:
            RefusedError: the node is ending.
            WireError: it broke at once, or a later one is here already.
        """
        async with self._joining:
            if self.ended.is_set():
                raise RefusedError("it is ending")
            if join.connection <= self._connection:
                raise WireError(f"connection {join.connection} came after {self._connection}")
            self._connection = join.connection
            await self._wire.detach()
            answer = Joined(self._wire.received)
            await link.send(Envelope(Kind.JOINED, ORCHESTRATOR, NODE, encode(answer)))
            running = asyncio.ensure_future(self._wire.run(link, join.received))
            await asyncio.sleep(0)  # it has taken the link before the next one may join
        with self.lease.held():
            try:
                reason = await running
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        _log.info("connection %d of the orchestrator ended: %s", join.connection, reason)

    async def pulse(self, link: Link, join: Join) -> None:
        """Send a pulse each half second until the stream breaks or the node ends.

        Raises:
            WireError: the stream broke.
        """
        while not self.ended.is_set():
            in_flight, tokens = self._models.load()
            pulse = Pulse(self._workers.silent_s(), in_flight, tokens)
            await link.send(Envelope(Kind.PULSE, ORCHESTRATOR, NODE, encode(pulse)))
            await asyncio.sleep(_PULSE_S)

    async def stop(self) -> None:
        """End workers, calls and the model server."""
        self.ended.set()
        await self._wire.close()
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)
        await asyncio.gather(self._workers.stop(), self._models.stop())

    async def _receive(self) -> None:
        """Deal with what the orchestrator says, over whatever connection."""
        while True:
            try:
                envelope = await self._wire.receive()
            except WireError as error:
                _log.info("the orchestrator's link has ended: %s", error)
                self.ended.set()
                return
            if envelope.to != NODE:
                await self._workers.send(envelope)
                continue
            try:
                self._take(envelope)
            except (WireError, msgspec.DecodeError) as error:
                self._begin(self.fail("Bug", f"{self._host}: {error}"))

    def _at_once(self, envelope: Envelope) -> None:
        """What must not wait behind messages for a worker that takes none. It is taken twice."""
        if envelope.to == NODE and envelope.kind in (Kind.END, Kind.LEAVE):
            with contextlib.suppress(msgspec.DecodeError):
                self._take(envelope)

    async def _watch_lease(self) -> None:
        await self.lease.run_out()
        self.forsaken = True
        _log.warning("no orchestrator was connected for %g s; ending", self._config.lease_s)
        self.ended.set()

    def _take(self, envelope: Envelope) -> None:
        """Deal with a message for the node itself, without waiting for what it begins."""
        match envelope.kind:
            case Kind.START:
                start = decode(envelope.body, NodeStart)
                self._host = start.host
                self._workers.expect(_indices(start))
                self._begin(self._start(start))
            case Kind.SERVE:
                self._begin(self._serve(decode(envelope.body, ServeModels)))
            case Kind.REQUESTS:
                self._models.submit(envelope)
            case Kind.RECORDINGS:
                self._models.record(decode(envelope.body, Recordings))
            case Kind.SPAWN:
                # Before the next message is taken, which may be for one of them.
                workers = decode(envelope.body, Spawn).workers
                self._workers.expect(workers)
                self._begin(self._spawn(workers))
            case Kind.END:
                for worker in decode(envelope.body, Spawn).workers:
                    self._workers.end(worker)
            case Kind.LEAVE:
                self.ended.set()
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

    async def _spawn(self, workers: list[int]) -> None:
        """Start further workers; those that do not come are lost like any others."""
        try:
            await self._workers.start(workers)
        except LaunchError as error:
            gone = [worker for worker in workers if not self._workers.connected(worker)]
            for worker in gone:
                self._workers.end(worker)
            message = f"{self._host}: {error}"
            await self._say(Kind.FAILED, Failure("PeerLost", message, workers=gone))

    async def _serve(self, wanted: ServeModels) -> None:
        """Change the models; say SERVING."""
        await self._say(Kind.SERVING, ModelsReady(await self._models.serve(wanted.models)))

    async def _deliver(self, envelope: Envelope) -> None:
        """Pass an envelope to whom it is for."""
        if envelope.to == ORCHESTRATOR:
            await self._to_orchestrator(envelope)
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
            await self._to_orchestrator(envelope)

    def _worker_exited(self, worker: int, status: int, log: Path) -> None:
        how = f"was ended by signal {-status}" if status < 0 else f"exited with status {status}"
        message = f"worker {worker} on {self._host} {how}; its log: {log}"
        _log.error("%s", message)
        message = where_logs_come(self._config, message)
        failure = Failure("PeerLost", message, workers=[worker])
        self._begin(self._say(Kind.FAILED, failure))

    async def fail(self, kind: str, message: str, trace: str = "") -> None:
        """Tell the orchestrator of something that ends the run; `kind` is an error's class."""
        text = where_logs_come(self._config, message)
        await self._say(Kind.FAILED, Failure(kind, text, trace))

    async def _say(self, kind: Kind, message: object) -> None:
        await self._to_orchestrator(Envelope(kind, ORCHESTRATOR, NODE, encode(message)))

    async def _to_orchestrator(self, envelope: Envelope) -> None:
        """Send over the orchestrator's link; when that has ended, the node is ending too."""
        with contextlib.suppress(WireError):
            await self._wire.send(envelope)


def _indices(start: NodeStart) -> range:
    return range(start.first_worker, start.first_worker + start.workers)
