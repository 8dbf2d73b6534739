"""The cluster that users' programs see: agents on workers, driven from a plain script."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import logging
import tempfile
import threading
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import uvloop

from agentsim import launch
from agentsim.actors.agent import Agent, type_path
from agentsim.actors.caller import Caller
from agentsim.actors.codec import Codec
from agentsim.actors.find import find_agent, sources_of
from agentsim.actors.messages import Create, Drop, Setup
from agentsim.actors.proxy import Group, Proxy
from agentsim.centre import Centre
from agentsim.config.hostfile import Host, Hostfile
from agentsim.errors import PeerLost, UserError
from agentsim.nodes import Nodes, open_nodes
from agentsim.plan import RunPlan, place
from agentsim.rpc.envelope import Envelope

_log = logging.getLogger(__name__)
# Constructor arguments of this many agents travel in one message, and at most so many bytes.
_AGENTS_A_MESSAGE = 10_000
_BYTES_A_MESSAGE = 1024 * 1024

Blocks = Callable[[int], list[tuple[int, int, int]]]
"""Where to put so many agents: (worker, first agent, count) of each part."""


class Place:
    """A part of a cluster, as a place to make agents: `Bob.on(place)`, `bob.to_dist(place)`.

    Use `Cluster.worker` or `Cluster.process`.
    """

    def __init__(self, cluster: Cluster, blocks: Blocks) -> None:
        self._cluster = cluster
        self._blocks = blocks

    def make(self, cls: type[Agent], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Proxy:
        """See `Cluster.make`."""
        return self._cluster._create(cls, [(args, kwargs)], 1, self._blocks)[0]

    def group(
        self,
        cls: type[Agent],
        arguments: Sequence[Any] | None = None,
        *,
        count: int | None = None,
    ) -> Group:
        """See `Cluster.group`."""
        return self._cluster._group(cls, arguments, count, self._blocks)


class Cluster:
    """Workers on which agents live. Use it as a context manager.

    Example:
        >>> with Cluster.local(workers=2, modules=["my_agents"]) as cluster:  # doctest: +SKIP
        ...     bob = Bob.on(cluster, "a name")
        ...     print(bob.act(1).result())

    Args:
        hostfile: on which machines.
        modules: names of the modules whose classes live on workers; they are sent there.
        threads: most threads of each worker for agents that block.
        log_dir: where nodes and workers log; None: a folder that goes away with the cluster.
    """

    def __init__(
        self,
        hostfile: Hostfile,
        *,
        modules: Iterable[str],
        threads: int = 32,
        log_dir: Path | None = None,
    ) -> None:
        self._modules = tuple(modules)
        for name in self._modules:
            importlib.import_module(name)
        self._hostfile = hostfile
        hosts = place(hostfile)
        self._plan = RunPlan(hosts, (), sessions_at_once=1, actions=0)
        self._threads = threads
        self._log_dir = log_dir
        self._groups = itertools.count(1)
        self._turns = itertools.count()
        self._made: dict[int, Group] = {}
        self._codec = Codec(self._modules)
        self._sources = sources_of(self._modules)
        self._thread: threading.Thread | None = None
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop
        self._caller: Caller
        self._centre: Centre
        self._stop: asyncio.Event

    @classmethod
    def local(cls, workers: int = 2, *, modules: Iterable[str], **options: Any) -> Cluster:
        """A cluster on this machine.

        Args:
            workers: worker processes.
            modules: names of the modules whose classes live on workers.
            options: see `Cluster`.
        """
        return cls(Hostfile(hosts=[Host(workers=workers)]), modules=modules, **options)

    @classmethod
    def from_hostfile(cls, path: str | Path, *, modules: Iterable[str], **options: Any) -> Cluster:
        """A cluster on the machines of a hostfile.

        Raises:
            ConfigError: the file is wrong.
            LaunchError: too few of its hosts can be used; says of each what is wrong with it.
        """
        from agentsim.config import load_hostfile

        hostfile = load_hostfile(path)
        # A thread of its own: in a notebook, this one has a loop that runs.
        with ThreadPoolExecutor(1) as pool:
            looked = pool.submit(asyncio.run, launch.usable(hostfile, _Logged()))
            return cls(looked.result(), modules=modules, **options)

    @property
    def workers(self) -> int:
        """Worker processes, those that were lost included."""
        return self._plan.workers

    def __enter__(self) -> Cluster:
        self._thread = threading.Thread(target=self._work, name="agentsim-cluster", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            self._thread.join()
            raise self._failed
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all workers; nothing is left running. Harmless when closed already."""
        if self._thread is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def worker(self, index: int) -> Place:
        """One of the workers, as a place to make agents.

        Raises:
            UserError: there is no such worker.
        """
        if not 0 <= index < self.workers:
            raise UserError(f"there is no worker {index}; there are {self.workers}")
        return Place(self, lambda count: [(index, 0, count)])

    @property
    def process(self) -> Place:
        """A place where every agent gets a process of its own, for work that keeps a CPU busy.

        The processes start side by side, on the hosts in turn, and end with `release`, or with the
        cluster.
        """
        return Place(self, self._processes)

    def make(self, cls: type[Agent], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Proxy:
        """Make an agent on the next worker; `Agent.on` is the usual way.

        Raises:
            CannotTravel: an argument cannot be sent.
            UserError: the class's module is not among `modules`.
        """
        return self._create(cls, [(args, kwargs)], 1, lambda count: [(self._turn(), 0, count)])[0]

    def group(
        self,
        cls: type[Agent],
        arguments: Sequence[Any] | None = None,
        *,
        count: int | None = None,
    ) -> Group:
        """Make many agents of one class, spread over all workers in blocks.

        Args:
            arguments: what each is made from: a tuple of positional arguments, a dict of keyword
                arguments, or a single value that is the only argument.
            count: how many, when all are made from nothing.

        Raises:
            CannotTravel: an argument cannot be sent.
        """
        return self._group(cls, arguments, count, self._blocks)

    def release(self, agents: Proxy | Group) -> None:
        """End agents that are not needed any more, and their processes if they have their own."""
        number, workers = agents._whereabouts()
        self._made.pop(number, None)
        for worker in workers:
            self._caller.send(worker, Drop(number))
        own = [worker for worker in workers if worker >= self.workers]
        if own:
            self._run(self._centre.end(own))

    def release_all(self) -> None:
        """End all agents that were made so far."""
        for group in list(self._made.values()):
            self.release(group)

    # --- making

    def _group(
        self, cls: type[Agent], arguments: Sequence[Any] | None, count: int | None, blocks: Blocks
    ) -> Group:
        if (arguments is None) == (count is None):
            raise UserError("a group is made from `arguments` or from a `count`")
        if arguments is None:
            assert count is not None
            return self._create(cls, None, count, blocks)
        return self._create(cls, [_split(each) for each in arguments], len(arguments), blocks)

    def _create(
        self,
        cls: type[Agent],
        arguments: Sequence[tuple[tuple[Any, ...], Mapping[str, Any]]] | None,
        count: int,
        blocks: Blocks,
    ) -> Group:
        path = type_path(cls)
        if cls.__module__ not in self._modules:
            raise UserError(
                f"{cls.__qualname__} is of module {cls.__module__}, which is not among the "
                f"cluster's modules: Cluster.local(..., modules=[{cls.__module__!r}])"
            )
        bodies = None
        if arguments is not None:
            bodies = [self._arguments(cls, args, kwargs) for args, kwargs in arguments]
        number = next(self._groups)
        parts = blocks(count)
        for worker, first, size in parts:
            if bodies is None:
                self._caller.send(worker, Create(number, path, first, size, [b""]))
                continue
            start = first
            for some in _chunks(bodies[first : first + size]):
                self._caller.send(worker, Create(number, path, start, len(some), some))
                start += len(some)
        self._made[number] = Group(number, path, parts, self._caller, self._find)
        return self._made[number]

    # --- where

    def _turn(self) -> int:
        """The next worker."""
        alive = self._alive()
        return alive[next(self._turns) % len(alive)]

    def _alive(self) -> list[int]:
        alive = [worker for worker in range(self.workers) if worker not in self._centre.gone]
        if not alive:
            raise PeerLost("all workers of the cluster are gone")
        return alive

    def _blocks(self, total: int) -> list[tuple[int, int, int]]:
        """(worker, first agent, count) over all workers."""
        alive = self._alive()
        bounds = [total * i // len(alive) for i in range(len(alive) + 1)]
        return [
            (worker, first, end - first)
            for worker, (first, end) in zip(alive, itertools.pairwise(bounds), strict=True)
            if end > first
        ]

    def _processes(self, total: int) -> list[tuple[int, int, int]]:
        """A process of its own for each agent; they start side by side."""
        workers = self._centre.reserve(total)
        for host in range(len(self._plan.hosts)):
            mine = [worker for worker in workers if self._host_in_turn(worker) == host]
            if mine:
                self._run(self._centre.begin(host, mine))
        return [(worker, agent, 1) for agent, worker in enumerate(workers)]

    def _host_in_turn(self, worker: int) -> int:
        """Where a further worker lives."""
        return (worker - self.workers) % len(self._plan.hosts)

    def _run(self, work: Coroutine[None, None, None]) -> None:
        """Do something on the loop's thread, and wait for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _find(self, path: str) -> type[Agent]:
        return find_agent(path, frozenset(self._modules))

    def _arguments(
        self, cls: type[Agent], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> bytes:
        if not args and not kwargs:
            return b""
        body, needs = self._codec.encode_call(args, kwargs, method=cls.__qualname__)
        if needs:
            raise UserError(
                f"{cls.__qualname__} is made from a placeholder; wait for its result first"
            )
        return body

    # --- the loop's thread

    def _work(self) -> None:
        try:
            uvloop.run(self._live())
        except BaseException as error:  # noqa: BLE001 - it is raised again in the user's thread
            self._failed = error
        finally:
            self._ready.set()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        with tempfile.TemporaryDirectory(prefix="agentsim-logs-") as folder:
            log_dir = self._log_dir or Path(folder)
            log_dir.mkdir(parents=True, exist_ok=True)
            launcher = launch.make(self._hostfile, log_dir, {})
            async with (
                open_nodes(self._plan, launcher, {}, _log.warning) as nodes,
                self.attached(nodes) as broken,
            ):
                self._ready.set()
                stopping = asyncio.ensure_future(self._stop.wait())
                ends: list[asyncio.Future[Any]] = [broken, stopping]
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                stopping.cancel()

    @asynccontextmanager
    async def attached(
        self,
        nodes: Nodes,
        other: Callable[[Envelope], Awaitable[None]] | None = None,
        lost: Callable[[PeerLost], None] = lambda error: None,
    ) -> AsyncIterator[asyncio.Future[None]]:
        """Live on nodes that somebody else has opened, and on the loop that runs.

        Args:
            nodes: with the workers of this cluster's hostfile.
            other: is given the messages that are not the actors' own; nothing more is read until
                it has taken one.
            lost: is told of workers and nodes that are gone.

        Yields:
            What raises when the nodes fail.
        """
        self._loop = asyncio.get_running_loop()
        self._centre = Centre(nodes, self.workers, self._codec, self._find, self._setup)
        self._caller = self._centre.caller
        async with self._centre.running(other, lost) as broken:
            yield broken

    def interrupt(self, error: BaseException) -> None:
        """Raise in whoever waits for a result in a thread, now and from now on."""
        self._caller.interrupt(error)

    def _setup(self) -> Setup:
        hosts = [host.address for host in self._plan.hosts for _ in range(host.workers)]
        further = range(self.workers, self._centre.workers)
        own = [self._plan.hosts[self._host_in_turn(worker)].address for worker in further]
        return Setup(list(self._modules), self._sources, [*hosts, *own], self._threads)


class _Logged:
    """Logs what a start has to say."""

    def stage(self, name: str) -> None:
        _log.info("%s", name)

    def notice(self, message: str) -> None:
        _log.warning("%s", message)


def _split(arguments: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    if isinstance(arguments, tuple):
        return arguments, {}
    if isinstance(arguments, Mapping):
        return (), arguments
    return (arguments,), {}


def _chunks(bodies: list[bytes]) -> Iterator[list[bytes]]:
    """Constructor arguments in messages of a bounded size; one stands for many that are equal."""
    chunk: list[bytes] = []
    size = 0
    for body in bodies:
        chunk.append(body)
        size += len(body)
        if len(chunk) >= _AGENTS_A_MESSAGE or size >= _BYTES_A_MESSAGE:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
