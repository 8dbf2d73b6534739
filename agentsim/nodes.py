"""The nodes of a run: started by a launcher, connected, and watched."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from pydantic import BaseModel

from agentsim import errors
from agentsim.errors import AgentsimError, PeerLost
from agentsim.launch import UNKNOWN_STATUS, Launcher
from agentsim.peers import Item, Peer, PeerState
from agentsim.plan import HostPlan, RunPlan
from agentsim.rpc.awake import AwakeClock
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.connection import JoinRefused
from agentsim.rpc.control import (
    Failure,
    ModelReady,
    ModelsReady,
    NodeReady,
    NodeStart,
    Recordings,
    ServeModels,
    Spawn,
)
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.messages import PLAYERS, Completion, Request
from agentsim.rpc.silence import News, Silence

_log = logging.getLogger(__name__)
# Messages from nodes that wait here before the nodes are made to wait.
_INBOX = 256
_CHECK_S = 0.25

SILENCE = Silence()
"""How long peers may be silent where nobody says otherwise. Tests shorten it."""


@asynccontextmanager
async def open_nodes(
    plan: RunPlan,
    launcher: Launcher,
    models: Mapping[str, BaseModel],
    notice: Callable[[str], None],
    silence: Silence | None = None,
    *,
    run_id: str = "",
) -> AsyncIterator[Nodes]:
    """Start nodes; nothing of them is left running afterwards.

    Args:
        plan: which hosts and workers.
        launcher: starts the nodes.
        models: the language models that nodes serve or call, by the name that requests use; none
            when workers play scripted ones.
        notice: is told of peers that are silent, and of those that are back.
        silence: how long a peer may be silent.
        run_id: what nodes call the run; empty: a random name.

    Raises:
        AgentsimError: a node did not come up.
    """
    nodes = Nodes(plan, notice, silence or SILENCE, run_id or secrets.token_hex(8))
    try:
        await nodes.start(launcher, models)
        yield nodes
    finally:
        await nodes.close()


class Nodes:
    """The nodes of one run. Use `open_nodes`.

    A connection that breaks is made again, and nothing is lost by that. A node or worker that is
    given up is told of by `receive`, once; what is sent to it from then on is dropped, and so is
    what still comes from it, but for attempts at language models, whose tokens were spent.

    Attributes:
        dropped: messages that came from a node or worker after it was given up or ended.
    """

    def __init__(
        self, plan: RunPlan, notice: Callable[[str], None], silence: Silence, run_id: str
    ) -> None:
        self.dropped = 0
        self._plan = plan
        self._notice = notice
        self._silence = silence
        self._run_id = run_id
        # A program that goes on with a run of an earlier one has a greater number.
        self._epoch = time.time_ns() // 1_000_000
        self._clock = AwakeClock()
        # By place in the plan.
        self._nodes: dict[int, Peer] = {}
        self._spawned: dict[int, int] = {}
        self._inbox: asyncio.Queue[Envelope | Exception] = asyncio.Queue(_INBOX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False

    def structured(self, model: str = PLAYERS) -> bool:
        """Whether every host's servers of a model enforce JSON schemas."""
        found = self._serving(model)
        return bool(found) and all(ready.structured for ready in found)

    def endpoints(self, model: str = PLAYERS) -> list[str]:
        """Base URLs of a model's servers, of all hosts."""
        return [url for ready in self._serving(model) for url in ready.endpoints]

    def models(self) -> dict[str, list[dict[str, Any]]]:
        """What is known of the models that are served, by name, for each host: its endpoints,
        whether they enforce schemas, the file of weights, and what the servers say of the model.
        """
        known: dict[str, list[dict[str, Any]]] = {}
        for place in self.alive():
            node = self._nodes[place]
            for name, ready in node.models.items():
                facts = {"host": node.plan.address, **msgspec.to_builtins(ready)}
                known.setdefault(name, []).append(facts)
        return known

    def places(self, model: str) -> list[int]:
        """How many requests the model's servers take at once, for each node."""
        return [self._nodes[place].models[model].in_flight for place in sorted(self._nodes)]

    def window(self, worker: int) -> int:
        """Requests that a worker should keep in flight: its share of the host's endpoints, twice,
        so that the endpoint never waits for a worker."""
        node = self._node_of(worker)
        ready = node.models.get(PLAYERS, ModelReady())
        return max(2, round(2 * ready.in_flight / max(1, node.plan.workers)))

    @property
    def in_flight(self) -> int:
        """Requests to language models under way, as the last pulses said."""
        return sum(node.pulse.in_flight for node in self._nodes.values() if not node.lost)

    def alive(self) -> list[int]:
        """Places in the plan of the nodes that are not lost."""
        return [place for place in sorted(self._nodes) if not self._nodes[place].lost]

    def states(self) -> list[PeerState]:
        """How each node is, and each of its workers, in order of hosts."""
        return [state for place in sorted(self._nodes) for state in self._nodes[place].states()]

    async def start(self, launcher: Launcher, models: Mapping[str, BaseModel]) -> None:
        """Start all nodes, side by side, and wait until they are ready.

        Raises:
            AgentsimError: one did not come up, for the reason that it gave.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for place, host in enumerate(self._plan.hosts):
                    group.create_task(self._start_node(launcher, place, host))
        except ExceptionGroup as several:
            # Each names its host; the first is enough to act on.
            raise several.exceptions[0] from None
        self._begin(self._watch_silence())
        for node in self._nodes.values():
            host = node.plan
            start = NodeStart(host.address, host.first_worker, host.workers, _as_json(models))
            await self._send(node, NODE, Kind.START, start)
        for place in sorted(self._nodes):
            node = self._nodes[place]
            node.models = (await node.ready).models

    async def serve(self, models: Mapping[str, BaseModel]) -> None:
        """Change the language models that all nodes serve, and wait until they answer.

        What is among the new ones goes on; the servers of others are stopped. Of a node that is
        lost meanwhile, `receive` tells.

        Raises:
            AgentsimError: a node could not, for the reason that it gave.
        """
        message = ServeModels(_as_json(models))
        nodes = [self._nodes[place] for place in self.alive()]
        for node in nodes:
            node.serving = asyncio.get_running_loop().create_future()
            await self._send(node, NODE, Kind.SERVE, message)
        for node in nodes:
            assert node.serving is not None
            node.models = await node.serving
            node.serving = None

    async def replay(self, model: str, replies: Iterable[list[Completion]]) -> None:
        """Give every node the replies that a model gives again, before it is asked.

        Args:
            model: name of the nodes' model.
            replies: in pieces of bounded size.
        """
        for piece in replies:
            message = Recordings(model, piece)
            for node in self._nodes.values():
                await self._send(node, NODE, Kind.RECORDINGS, message)

    async def ask(self, node: int, requests: Sequence[Request]) -> None:
        """Send requests to a node's models; `receive` gives the COMPLETIONS.

        Args:
            node: its place in the hostfile, from 0.

        Raises:
            PeerLost: the node is gone.
        """
        await self._send_alive(self._nodes[node], NODE, Kind.REQUESTS, requests)

    async def send(self, worker: int, kind: Kind, message: object) -> None:
        """Send a message to a worker, by way of its node; waits while much is under way there.

        What is for a worker that was given up is dropped: `receive` tells of it.
        """
        node = self._node_of(worker)
        if worker not in node.given_up:
            await self._send(node, worker, kind, message)

    async def receive(self) -> Envelope:
        """The next message of any worker, or of a node whose models were asked.

        Raises:
            PeerLost: a node or worker was lost; told once, and the others go on.
            AgentsimError: a node or worker failed.
        """
        item = await self._inbox.get()
        if isinstance(item, Exception):
            raise item
        return item

    async def close(self) -> None:
        """End all nodes; nothing is left running."""
        self._closing = True
        await asyncio.gather(*(self._close_node(node) for node in self._nodes.values()))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(node.client.close() for node in self._nodes.values()))

    async def spawn(self, node: int, workers: list[int]) -> None:
        """Start further workers on a node; what is sent to them waits until they are there.

        Args:
            node: its place in the hostfile, from 0.
            workers: indices that no worker ever had.

        Raises:
            PeerLost: the node is gone.
        """
        for worker in workers:
            self._spawned[worker] = node
        self._nodes[node].further += workers
        await self._send_alive(self._nodes[node], NODE, Kind.SPAWN, Spawn(workers))

    async def end(self, workers: list[int]) -> None:
        """End workers: each is asked to, and killed 3 s later. What still comes is dropped.

        It is no loss: `receive` does not tell of it. Harmless for workers that are gone.
        """
        for worker in workers:
            node = self._node_of(worker)
            node.given_up.add(worker)
            await self._send(node, NODE, Kind.END, Spawn([worker]), urgent=True)

    def _serving(self, model: str) -> list[ModelReady]:
        nodes = (self._nodes[place] for place in self.alive())
        return [node.models[model] for node in nodes if model in node.models]

    def _node_of(self, worker: int) -> Peer:
        """The node of a worker.

        Raises:
            StopIteration: no worker has this index.
        """
        if worker in self._spawned:
            return self._nodes[self._spawned[worker]]
        return next(
            node
            for node in self._nodes.values()
            if 0 <= worker - node.plan.first_worker < node.plan.workers
        )

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start_node(self, launcher: Launcher, place: int, host: HostPlan) -> None:
        handle = await launcher.start(host.address, place)
        node = Peer(host, handle, run_id=self._run_id, epoch=self._epoch, clock=self._clock)
        self._nodes[place] = node
        self._begin(self._connect(node))
        self._begin(self._read(node))
        self._begin(self._watch_exit(node))

    async def _send(
        self, node: Peer, to: int, kind: Kind, message: object, *, urgent: bool = False
    ) -> None:
        envelope = Envelope(kind, to, ORCHESTRATOR, encode(message))
        try:
            await node.connection.wire.send(envelope, urgent=urgent)
        except WireError:
            if not node.lost:
                raise

    async def _send_alive(self, node: Peer, to: int, kind: Kind, message: object) -> None:
        if node.lost:
            raise PeerLost(f"the node of {node.plan.address} is gone; its log: {node.handle.log}")
        await self._send(node, to, kind, message)

    async def _connect(self, node: Peer) -> None:
        try:
            await node.connection.run()
        except JoinRefused as refused:
            self._lose(node, node.farewell(f"serves this run no longer: {refused}"))

    async def _watch_exit(self, node: Peer) -> None:
        """Act at once on an exit that is seen, after what the node said last."""
        status = await node.handle.wait()
        how = f"was ended by signal {-status}" if status < 0 else f"exited with {status}"
        if status == UNKNOWN_STATUS:
            how = "has ended"
        if not self._closing:
            self._lose(node, node.farewell(how))

    async def _read(self, node: Peer) -> None:
        """Move a node's messages to the inbox until it is gone."""
        try:
            while True:
                envelope = await node.connection.wire.receive()
                late = envelope.sender in node.given_up
                # Attempts are passed on all the same: whoever drops them counts their tokens.
                if node.lost or (late and envelope.kind is not Kind.ATTEMPTS):
                    self.dropped += 1
                else:
                    await self._take(node, envelope)
        except WireError as error:
            _log.info("the data stream of %s ended: %s", node.plan.address, error)
        except msgspec.DecodeError as error:
            self._lose(node, node.farewell(f"sent what cannot be read ({error})"))
        if not self._closing:
            self._lose(node, node.farewell("has no link any more"))

    async def _take(self, node: Peer, envelope: Envelope) -> None:
        if envelope.kind is Kind.FAILED:
            await self._failed(node, _error_of(decode(envelope.body, Failure)))
        elif envelope.to >= 0:
            await self._relay(envelope)
        elif envelope.kind is Kind.READY and not node.ready.done():
            node.ready.set_result(decode(envelope.body, NodeReady))
        elif envelope.kind is Kind.SERVING and node.serving is not None:
            node.serving.set_result(decode(envelope.body, ModelsReady).models)
        else:
            await self._inbox.put(envelope)

    async def _relay(self, envelope: Envelope) -> None:
        """Pass a message of a worker on to a worker of another host."""
        with contextlib.suppress(StopIteration, WireError):
            node = self._node_of(envelope.to)
            if not node.lost and envelope.to not in node.given_up:
                await node.connection.wire.send(envelope)
                return
        _log.warning("dropped a message for worker %d, which is not there", envelope.to)

    async def _failed(self, node: Peer, error: Exception) -> None:
        """Give an error to whoever waits for the node."""
        if isinstance(error, PeerLost):
            node.given_up.update(error.workers)
        if not node.ready.done():
            node.ready.set_exception(error)
            return
        if node.serving is not None and not node.serving.done():
            if not isinstance(error, PeerLost):
                node.serving.set_exception(error)
                return
            if node.lost:
                node.serving.set_result({})
        await self._inbox.put(error)

    async def _watch_silence(self) -> None:
        """Tell the user of peers that are silent, and give them up after the grace time."""
        while not self._closing:
            await asyncio.sleep(min(_CHECK_S, self._silence.notice_s / 4))
            for node in self._nodes.values():
                for item in node.look(self._silence):
                    self._tell(node, item)

    def _tell(self, node: Peer, item: Item) -> None:
        if item.news is not News.LOST:
            self._notice(item.text)
        elif item.peer == NODE:
            self._lose(node, item.text)
        else:
            self._begin(self._failed(node, PeerLost(item.text, (item.peer,))))
            self._begin(self.end([item.peer]))

    def _lose(self, node: Peer, text: str) -> None:
        """Give a node up, with its workers."""
        if node.lost:
            return
        node.lost = True
        workers = tuple(w for w in node.workers if w not in node.given_up)
        node.connection.wire.end(text)
        self._begin(self._failed(node, PeerLost(text, workers)))
        # It may live and be cut off, or be stopped: what can be ended of it is.
        self._begin(node.handle.stop())

    async def _close_node(self, node: Peer) -> None:
        if not node.lost:
            node.connection.leaving = True
            with contextlib.suppress(WireError):
                envelope = Envelope(Kind.LEAVE, NODE, ORCHESTRATOR, b"")
                await node.connection.wire.send(envelope, urgent=True)
        await node.handle.stop()


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
