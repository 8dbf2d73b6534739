"""The nodes of a run: started by a launcher, connected, and watched."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import msgspec
from pydantic import BaseModel

from agentsim import errors
from agentsim.errors import AgentsimError, PeerLost
from agentsim.launch import Launcher, NodeHandle
from agentsim.plan import HostPlan, RunPlan
from agentsim.rpc.channel import Client
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.control import (
    Failure,
    ModelReady,
    ModelsReady,
    NodeReady,
    NodeStart,
    Pulse,
    Recordings,
    ServeModels,
    Spawn,
)
from agentsim.rpc.envelope import DATA, NODE, ORCHESTRATOR, PULSE, Envelope, Kind, WireError
from agentsim.rpc.links import Link
from agentsim.rpc.messages import PLAYERS, Completion, Request

_log = logging.getLogger(__name__)
# Messages from nodes that wait here before the nodes are made to wait.
_INBOX = 256
_CHECK_S = 0.5


@dataclass(frozen=True, slots=True)
class Silence:
    """How long a peer may be silent.

    Attributes:
        notice_s: after which the user is told.
        grace_s: after the notice, until it counts as lost.
    """

    notice_s: float = 5.0
    grace_s: float = 30.0


@dataclass(slots=True)
class _Node:
    plan: HostPlan
    handle: NodeHandle
    client: Client
    data: Link
    last_pulse_s: float
    pulse: Pulse = field(default_factory=Pulse)
    noticed: set[int] = field(default_factory=set)
    given_up: set[int] = field(default_factory=set)
    lost: bool = False
    models: dict[str, ModelReady] = field(default_factory=dict)
    serving: asyncio.Future[dict[str, ModelReady]] | None = None

    def silences(self) -> dict[int, float]:
        """Seconds since the last pulse of the node (NODE) and of each of its workers.

        While the node is silent, nothing is known of its workers.
        """
        own_s = time.monotonic() - self.last_pulse_s
        known = self.pulse.silent_s if own_s < 2 * _CHECK_S + 1 else {}
        return {NODE: own_s, **known}


@asynccontextmanager
async def open_nodes(
    plan: RunPlan,
    launcher: Launcher,
    models: Mapping[str, BaseModel],
    notice: Callable[[str], None],
    silence: Silence | None = None,
) -> AsyncIterator[Nodes]:
    """Start nodes; nothing of them is left running afterwards.

    Args:
        plan: which hosts and workers.
        launcher: starts the nodes.
        models: the language models that nodes serve or call, by the name that requests use; none
            when workers play scripted ones.
        notice: is told of peers that are silent.
        silence: how long a peer may be silent.

    Raises:
        AgentsimError: a node did not come up.
    """
    nodes = Nodes(plan, notice, silence or Silence())
    try:
        await nodes.start(launcher, models)
        yield nodes
    finally:
        await nodes.close()


class Nodes:
    """The nodes of one run. Use `open_nodes`."""

    def __init__(self, plan: RunPlan, notice: Callable[[str], None], silence: Silence) -> None:
        self._plan = plan
        self._notice = notice
        self._silence = silence
        self._nodes: list[_Node] = []
        self._spawned: dict[int, int] = {}
        self._inbox: asyncio.Queue[Envelope | Exception] = asyncio.Queue(_INBOX)
        self._tasks: list[asyncio.Task[None]] = []

    def structured(self, model: str = PLAYERS) -> bool:
        """Whether every host's servers of a model enforce JSON schemas."""
        found = [node.models[model] for node in self._nodes if model in node.models]
        return bool(found) and all(ready.structured for ready in found)

    def endpoints(self, model: str = PLAYERS) -> list[str]:
        """Base URLs of a model's servers, of all hosts."""
        found = [node.models[model] for node in self._nodes if model in node.models]
        return [url for ready in found for url in ready.endpoints]

    def places(self, model: str) -> list[int]:
        """How many requests the model's servers take at once, for each node."""
        return [node.models[model].in_flight for node in self._nodes]

    def window(self, worker: int) -> int:
        """Requests that a worker should keep in flight: its share of the host's endpoints, twice,
        so that the endpoint never waits for a worker."""
        host = self._host_of(worker)
        ready = self._nodes[self._plan.hosts.index(host)].models.get(PLAYERS, ModelReady())
        return max(2, round(2 * ready.in_flight / host.workers))

    def alive(self) -> list[int]:
        """Nodes that are not lost, as places in the plan's hosts."""
        return [place for place, node in enumerate(self._nodes) if not node.lost]

    @property
    def in_flight(self) -> int:
        """Requests to language models under way, as the last pulses said."""
        return sum(node.pulse.in_flight for node in self._nodes)

    async def start(self, launcher: Launcher, models: Mapping[str, BaseModel]) -> None:
        """Start all nodes, side by side, and wait until they are ready.

        Raises:
            AgentsimError: one did not come up, for the reason that it gave.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for host in self._plan.hosts:
                    group.create_task(self._start_node(launcher, host))
        except ExceptionGroup as several:
            # Each names its host; the first is enough to act on.
            raise several.exceptions[0] from None
        self._nodes.sort(key=lambda node: node.plan.first_worker)
        for node in self._nodes:
            host = node.plan
            start = NodeStart(host.address, host.first_worker, host.workers, _as_json(models))
            await node.data.send(Envelope(Kind.START, NODE, ORCHESTRATOR, encode(start)))
        await asyncio.gather(*(self._await_ready(node) for node in self._nodes))
        for node in self._nodes:
            self._tasks.append(asyncio.ensure_future(self._read(node)))
        self._tasks.append(asyncio.ensure_future(self._watch_silence()))

    async def serve(self, models: Mapping[str, BaseModel]) -> None:
        """Change the language models that all nodes serve, and wait until they answer.

        What is among the new ones goes on; the servers of others are stopped.

        Raises:
            AgentsimError: a node could not, for the reason that it gave.
        """
        message = ServeModels(_as_json(models))
        for node in self._nodes:
            node.serving = asyncio.get_running_loop().create_future()
            await self._send(node, NODE, Kind.SERVE, message)
        for node in self._nodes:
            assert node.serving is not None
            node.models = await node.serving
            node.serving = None

    async def replay(self, model: str, replies: Iterable[list[Completion]]) -> None:
        """Give every node the replies that a model gives again, before it is asked.

        Args:
            model: name of the nodes' model.
            replies: in pieces of bounded size.

        Raises:
            PeerLost: a node is gone.
        """
        for piece in replies:
            message = Recordings(model, piece)
            for node in self._nodes:
                await self._send(node, NODE, Kind.RECORDINGS, message)

    async def ask(self, node: int, requests: Sequence[Request]) -> None:
        """Send requests to a node's models; `receive` gives the COMPLETIONS.

        Args:
            node: its place in the hostfile, from 0.

        Raises:
            PeerLost: the node is gone.
        """
        await self._send(self._nodes[node], NODE, Kind.REQUESTS, requests)

    async def send(self, worker: int, kind: Kind, message: object) -> None:
        """Send a message to a worker, by way of its node.

        Raises:
            PeerLost: the node is gone.
        """
        host = self._host_of(worker)
        await self._send(self._nodes[self._plan.hosts.index(host)], worker, kind, message)

    async def receive(self) -> Envelope:
        """The next message of any worker, or of a node whose models were asked.

        Raises:
            AgentsimError: a node or worker failed or was lost.
        """
        item = await self._inbox.get()
        if isinstance(item, Exception):
            raise item
        return item

    async def close(self) -> None:
        """End all nodes; nothing is left running."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(self._close_node(node) for node in self._nodes))

    async def spawn(self, node: int, workers: list[int]) -> None:
        """Start further workers on a node; what is sent to them waits until they are there.

        Args:
            node: its place in the hostfile, from 0.
            workers: indices that no worker has.

        Raises:
            PeerLost: the node is gone.
        """
        for worker in workers:
            self._spawned[worker] = node
        await self._send(self._nodes[node], NODE, Kind.SPAWN, Spawn(workers))

    async def end(self, workers: list[int]) -> None:
        """End workers, whatever state they are in.

        Raises:
            PeerLost: the node is gone.
        """
        for worker in workers:
            node = self._nodes[self._plan.hosts.index(self._host_of(worker))]
            await self._send(node, NODE, Kind.END, Spawn([worker]))

    def _host_of(self, worker: int) -> HostPlan:
        if worker in self._spawned:
            return self._plan.hosts[self._spawned[worker]]
        return next(
            h for h in self._plan.hosts if h.first_worker <= worker < h.first_worker + h.workers
        )

    async def _start_node(self, launcher: Launcher, host: HostPlan) -> None:
        handle = await launcher.start(host.address, self._plan.hosts.index(host))
        client = Client(handle.target, handle.identity)
        node = _Node(host, handle, client, client.open(DATA), time.monotonic())
        self._nodes.append(node)
        self._tasks.append(asyncio.ensure_future(self._read_pulse(node)))

    async def _send(self, node: _Node, to: int, kind: Kind, message: object) -> None:
        try:
            await node.data.send(Envelope(kind, to, ORCHESTRATOR, encode(message)))
        except WireError:
            raise await self._lost(node) from None

    async def _await_ready(self, node: _Node) -> None:
        try:
            envelope = await node.data.receive()
        except WireError:
            envelope = None
        if envelope is None:
            raise await self._lost(node)
        if envelope.kind is Kind.FAILED:
            raise _error_of(decode(envelope.body, Failure))
        node.models = decode(envelope.body, NodeReady).models

    async def _read(self, node: _Node) -> None:
        """Move a node's messages to the inbox until it is gone."""
        try:
            while (envelope := await node.data.receive()) is not None:
                if envelope.kind is Kind.FAILED:
                    await self._failed(node, _error_of(decode(envelope.body, Failure)))
                elif envelope.to >= 0:
                    await self._relay(envelope)
                elif envelope.kind is Kind.SERVING and node.serving is not None:
                    node.serving.set_result(decode(envelope.body, ModelsReady).models)
                else:
                    await self._inbox.put(envelope)
        except (WireError, msgspec.DecodeError) as error:
            _log.info("the data stream of %s ended: %s", node.plan.address, error)
        await self._failed(node, await self._lost(node))

    async def _relay(self, envelope: Envelope) -> None:
        """Pass a message of a worker on to a worker of another host."""
        try:
            host = self._host_of(envelope.to)
            await self._nodes[self._plan.hosts.index(host)].data.send(envelope)
        except (StopIteration, WireError):
            _log.warning("dropped a message for worker %d, which is not there", envelope.to)

    async def _failed(self, node: _Node, error: Exception) -> None:
        """Give an error to whoever waits for the node."""
        if node.serving is not None and not node.serving.done():
            node.serving.set_exception(error)
        else:
            await self._inbox.put(error)

    async def _read_pulse(self, node: _Node) -> None:
        link = node.client.open(PULSE)
        try:
            while (envelope := await link.receive()) is not None:
                node.pulse = decode(envelope.body, Pulse)
                node.last_pulse_s = time.monotonic()
        except WireError as error:
            _log.info("the pulse of %s ended: %s", node.plan.address, error)

    async def _watch_silence(self) -> None:
        """Tell the user of peers that are silent, and give them up after the grace time."""
        while True:
            await asyncio.sleep(_CHECK_S)
            for node in self._nodes:
                if node.lost:
                    continue
                for peer, silent_s in node.silences().items():
                    await self._judge(node, peer, silent_s)

    async def _judge(self, node: _Node, peer: int, silent_s: float) -> None:
        """Tell of one peer that is silent: a worker, or the node itself (NODE)."""
        if silent_s < self._silence.notice_s:
            node.noticed.discard(peer)
            return
        where = node.plan.address
        who = f"the node of {where}" if peer == NODE else f"worker {peer} on {where}"
        what = f"{who} has been silent for {silent_s:.0f} s"
        if peer not in node.noticed:
            node.noticed.add(peer)
            self._notice(f"{what}; waiting for it")
        if silent_s > self._silence.notice_s + self._silence.grace_s and peer not in node.given_up:
            node.given_up.add(peer)
            node.lost = peer == NODE
            gone = self._workers_of(node) if peer == NODE else (peer,)
            await self._inbox.put(PeerLost(f"{what}; its log: {node.handle.log}", gone))

    async def _lost(self, node: _Node) -> PeerLost:
        try:
            status: int | None = await asyncio.wait_for(node.handle.wait(), 2.0)
        except TimeoutError:
            status = None
        how = "closed its connection"
        if status is not None:
            how = f"was ended by signal {-status}" if status < 0 else f"exited with {status}"
        silent_s = time.monotonic() - node.last_pulse_s
        node.lost = True
        return PeerLost(
            f"the node of {node.plan.address} {how}; last sign of life {silent_s:.1f} s before; "
            f"its log: {node.handle.log}",
            self._workers_of(node),
        )

    def _workers_of(self, node: _Node) -> tuple[int, ...]:
        workers = range(node.plan.first_worker, node.plan.first_worker + node.plan.workers)
        further = [w for w, place in self._spawned.items() if self._nodes[place] is node]
        return (*workers, *further)

    async def _close_node(self, node: _Node) -> None:
        # The node ends when its stdin does; the connection is closed after it, since a node also
        # ends when its orchestrator leaves, and one reason in its log is enough.
        await node.handle.stop()
        await node.client.close()


def _as_json(models: Mapping[str, BaseModel]) -> dict[str, str]:
    return {name: model.model_dump_json() for name, model in models.items()}


def _error_of(failure: Failure) -> Exception:
    """The error that a node or worker reported."""
    if failure.traceback:
        _log.error("remote traceback:\n%s", failure.traceback)
    kind = getattr(errors, failure.kind, None)
    if failure.kind == "MissingPackage":
        return errors.UserError(failure.message)
    if kind is PeerLost:
        return PeerLost(failure.message, tuple(failure.workers))
    if isinstance(kind, type) and issubclass(kind, AgentsimError):
        return kind(failure.message)
    return RemoteBug(failure.message, failure.traceback)


class RemoteBug(Exception):
    """An unexpected exception in a node or worker: a bug of ours, with its remote traceback."""

    def __init__(self, message: str, traceback: str) -> None:
        super().__init__(f"{message}\n{traceback}")
