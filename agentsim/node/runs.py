"""The runs of a node that stays: begun, within its slots, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import logging
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agentsim import logs
from agentsim.config.models import AnsweringModel, LlamaCpp
from agentsim.errors import LaunchError, UserError
from agentsim.node.door import Host, RefusedError, known
from agentsim.node.node import Node
from agentsim.node.servers import Servers
from agentsim.node.staying_logs import RunLogs
from agentsim.rpc.control import Join, NodeConfig
from agentsim.rpc.links import Link
from agentsim.rpc.staying import Carried, EndRun, Logs, Opened, OpenRun, Stay
from agentsim.version import __version__

_log = logging.getLogger(__name__)
# How long an orchestrator has to leave by itself when its run is ended at the node.
_LEAVE_S = 3.0
_RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


@dataclass(slots=True)
class Run:
    """A run at a node that stays.

    Attributes:
        directory: the run's, as its orchestrator names it.
        folder: of its socket.
        streams: of its orchestrator, that are connected.
        join: of its orchestrator, the first.
        gone: set when nothing of it is left.
        opened_s, left_s: when it was opened, and when its orchestrator left; on the monotonic
            clock. The orchestrator of a run that was just opened has left.
    """

    run_id: str
    name: str
    directory: str
    node: Node
    folder: Path
    lease_s: float
    opened_s: float
    left_s: float
    streams: int = 0
    join: Join | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class Runs:
    """Hosts runs; says when none has come for long enough.

    Args:
        config: of the node.
        stay: on which terms.
        on_idle: called when no run has come for the idle time.

    Attributes:
        servers: model servers that the runs share.
        draining: whether no new runs are taken.
    """

    def __init__(self, config: NodeConfig, stay: Stay, on_idle: Callable[[], None]) -> None:
        self.servers = Servers(Path(config.log_dir), keep=True)
        self.logs = RunLogs(Path(config.log_dir))
        self.draining = False
        self._config = config
        self._stay = stay
        self._on_idle = on_idle
        self._opened = itertools.count(1)
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = False
        self._wait()

    @property
    def all(self) -> list[Run]:
        """Those that go on."""
        return list(self._runs.values())

    @property
    def workers(self) -> int:
        """Worker processes of all runs."""
        return sum(run.node.workers.count for run in self._runs.values())

    @property
    def idle_s(self) -> float:
        """Seconds since the last run has ended; 0 while there is one."""
        return 0.0 if self._runs else time.monotonic() - self._idle_from_s

    async def find(self, join: Join) -> Host:
        """What serves the streams of a run.

        Raises:
            RefusedError: the run is not here, or another program has gone on with it.
        """
        run = self._runs.get(join.run_id)
        if run is None:
            raise RefusedError("no such run here; it has ended, or its lease has")
        run.join = known(join, run.join)
        return _Present(run)

    async def open(self, command: OpenRun) -> Opened:
        """Begin a run.

        Raises:
            LaunchError: something speaks against it.
        """
        if command.version != __version__:
            raise LaunchError(
                f"the node is of agentsim {__version__}, the run of {command.version}; end it "
                f"(agentsim cluster down --name {self._stay.cluster}) and start it anew"
            )
        if self.draining:
            raise LaunchError(
                "takes no new runs; to change that: "
                f"agentsim cluster drain {self._stay.host} --undo"
            )
        await self._take_over(command.directory)
        if not _RUN_ID.fullmatch(command.run_id) or command.run_id in self._runs:
            raise LaunchError(f"run {command.run_id[:64]!r} is there already, or is no name")
        try:
            folder, log_dir = self._folders(command)
        except OSError as error:
            raise LaunchError(f"the run's folders cannot be made: {error}") from error
        logs.hide(command.api_keys.values())
        contextvars.copy_context().run(self._make, command, folder, log_dir)
        return Opened(str(log_dir))

    async def end(self, command: EndRun) -> Carried:
        """End a run; with a reason its orchestrator is told, and may leave by itself first."""
        run = self._runs.get(command.run_id)
        if run is None:
            return Carried("no such run")
        workers = run.node.workers.count
        if command.why and run.streams:
            await run.node.fail("RunError", f"{self._stay.host}: {command.why}")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(run.node.ended.wait(), _LEAVE_S)
        run.node.ended.set()
        await run.gone.wait()
        with_ = f" with {counted(workers, 'worker')}" if workers else ""
        return Carried(f"ended {run.name}{with_}")

    def take_logs(self, run_id: str) -> Logs:
        """The logs that a run has left in a folder of this node's; they go.

        Raises:
            LaunchError: the run goes on.
        """
        if not _RUN_ID.fullmatch(run_id) or run_id in self._runs:
            raise LaunchError(f"run {run_id[:64]!r} goes on, or is no name")
        return self.logs.take(run_id)

    async def stop(self) -> None:
        """End all runs and all model servers."""
        self.draining = self._ending = True
        self._idle.cancel()
        for run in self._runs.values():
            run.node.ended.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.servers.stop()

    def _make(self, command: OpenRun, folder: Path, log_dir: Path) -> None:
        """Make a node for a run; what it does is logged in the run's name."""
        logs.run.set(command.name)
        config = NodeConfig(
            address="",
            folder=str(folder),
            log_dir=str(log_dir),
            api_keys={**self._config.api_keys, **command.api_keys},
            log=self._config.log,
            lease_s=command.lease_s,
        )
        node = Node(
            config,
            servers=self.servers,
            run_id=command.run_id,
            admit=lambda workers: self._admit(command.run_id, workers),
            locate=lambda spec: _located(spec, command.folder),
        )
        now = time.monotonic()
        run = Run(
            run_id=command.run_id,
            name=command.name,
            directory=command.directory,
            node=node,
            folder=folder,
            lease_s=command.lease_s,
            opened_s=now,
            left_s=now,
        )
        self._runs[command.run_id] = run
        self._idle.cancel()
        task = asyncio.ensure_future(self._host(run))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        _log.info("run %s (%s) begins", run.name, run.run_id)

    def _folders(self, command: OpenRun) -> tuple[Path, Path]:
        """For the run's socket, and for its logs."""
        folder = Path(self._config.folder) / f"run-{next(self._opened)}"
        folder.mkdir(mode=0o700)
        log_dir = Path(command.log_dir or self.logs.of(command.run_id))
        log_dir.mkdir(parents=True, exist_ok=True)
        return folder, log_dir

    async def _take_over(self, directory: str) -> None:
        """End what is left of an earlier run in the same directory: somebody goes on with it."""
        for run in list(self._runs.values()):
            if directory and run.directory == directory and not run.streams:
                _log.info("run %s (%s) is gone on with", run.name, run.run_id)
                run.node.ended.set()
                await run.gone.wait()

    def _admit(self, run_id: str, workers: int) -> None:
        """Refuse workers that the machine has no slots for.

        Raises:
            LaunchError: there are too few.
        """
        own = self._runs[run_id].name
        if self._stay.slots is None:
            return
        used = [(run.name, run.node.workers.count) for run in self._runs.values()]
        free = self._stay.slots - sum(n for _, n in used)
        if workers <= free:
            return
        by = ", ".join(f"{name} ({n})" for name, n in used if n)
        raise LaunchError(
            f"the node has {self._stay.slots} worker slots, {free} of them free, and {own} wants "
            f"{workers} workers" + (f"; in use by {by}" if by else "") + ". Take fewer workers "
            "(--workers), wait for a run to end, or end one: agentsim cluster stop RUN"
        )

    async def _host(self, run: Run) -> None:
        """Wait for a run's end, and clear up after it."""
        try:
            await run.node.ended.wait()
            await run.node.stop()
        finally:
            shutil.rmtree(run.folder, ignore_errors=True)
            self.logs.ended(run.run_id)
            del self._runs[run.run_id]
            run.gone.set()
            _log.info("run %s (%s) has ended", run.name, run.run_id)
            if not self._runs and not self._ending:
                self._wait()

    def _wait(self) -> None:
        """Wait for a run, for the idle time."""
        self._idle_from_s = time.monotonic()
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(self._stay.idle_s, self._on_idle)


class _Present:
    """A run's node, and its orchestrator while that is connected."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def data(self, link: Link, join: Join) -> None:
        with self._connected():
            await self._run.node.data(link, join)

    async def pulse(self, link: Link, join: Join) -> None:
        with self._connected():
            await self._run.node.pulse(link, join)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        self._run.streams += 1
        try:
            yield
        finally:
            self._run.streams -= 1
            self._run.left_s = time.monotonic()


def _located(spec: AnsweringModel, folder: str) -> AnsweringModel:
    """A model whose file is named in full.

    Args:
        folder: that the run's program works in; empty: it is on another machine.

    Raises:
        UserError: the file is named from there.
    """
    if not isinstance(spec, LlamaCpp) or not spec.name.endswith(".gguf"):
        return spec
    path = Path(spec.name).expanduser()
    if path.is_absolute():
        return spec
    if not folder:
        raise UserError(
            f"model.name {spec.name}: name the file in full, as it is called on the host"
        )
    return spec.model_copy(update={"name": str(Path(folder) / path)})


def counted(number: int, name: str) -> str:
    """`1 run`, `2 runs`; nothing for none."""
    return f"{number} {name}{'s' if number > 1 else ''}" if number else ""
