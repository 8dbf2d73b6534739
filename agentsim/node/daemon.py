"""A node that stays: several runs at once, and model servers that outlive them."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import itertools
import logging
import re
import shutil
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agentsim import logs
from agentsim.config.models import AnsweringModel, LlamaCpp
from agentsim.errors import AgentsimError, LaunchError, UserError
from agentsim.node.door import Door, RefusedError, known
from agentsim.node.node import Node
from agentsim.node.reports import Reporter, Run
from agentsim.node.servers import Servers
from agentsim.rpc.codec import encode
from agentsim.rpc.control import Join, NodeConfig
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind, WireError
from agentsim.rpc.identity import Identity
from agentsim.rpc.links import Link
from agentsim.rpc.staying import (
    Answer,
    Carried,
    Command,
    Drain,
    EndNode,
    EndRun,
    Here,
    LogPart,
    Logs,
    NodeReport,
    Opened,
    OpenRun,
    ReadLog,
    Refused,
    Renew,
    Status,
    TakeLogs,
    read_command,
)
from agentsim.version import __version__

_log = logging.getLogger(__name__)
_LOG_PART_BYTES = 256 * 1024
# Of a run's logs so many are given away, which keeps a message within its bounds.
_MOST_LOGS = 128
# Logs of so many runs are kept when nobody has taken them.
_KEPT_LOGS = 20
# How long an orchestrator has to leave by itself when its run is ended at the node.
_LEAVE_S = 3.0
_RUN_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


class Daemon:
    """Hosts runs, and ends when it is told to, or when none has come for long enough.

    Args:
        config: `stay` is set.

    Attributes:
        ended: set when the node is to end.
    """

    def __init__(self, config: NodeConfig) -> None:
        assert config.stay is not None
        self.ended = asyncio.Event()
        self._config = config
        self._stay = config.stay
        self._identity = config.identity
        self._opened = itertools.count(1)
        self._servers = Servers(Path(config.log_dir), keep=True)
        self._reporter = Reporter(config.stay)
        self._runs: dict[str, Run] = {}
        self._door = Door(self._find)
        self._tasks: set[asyncio.Task[None]] = set()
        self._logs: deque[Path] = deque()
        self._draining = False
        self._idle_from_s = time.monotonic()
        self._idle = asyncio.get_running_loop().call_later(config.stay.idle_s, self._end_idle)

    def identity(self) -> Identity:
        """What the node shows to whoever connects now."""
        assert self._identity is not None
        return self._identity

    # --- streams

    async def data(self, link: Link) -> None:
        """Serve the data stream of a run's orchestrator."""
        await self._door.data(link)

    async def pulse(self, link: Link) -> None:
        """Serve the pulse of a run."""
        await self._door.pulse(link)

    async def control(self, link: Link) -> None:
        """Carry out commands, one after another."""
        with contextlib.suppress(WireError):
            while (envelope := await link.receive()) is not None:
                if envelope.kind is not Kind.COMMAND:
                    return
                try:
                    command = read_command(envelope.body)
                except msgspec.DecodeError as error:
                    answer = Refused("RunError", f"the command cannot be read: {error}")
                    await _answer(link, answer)
                    continue
                try:
                    await _answer(link, await self._carry_out(command))
                finally:
                    if isinstance(command, EndNode):
                        self.ended.set()

    async def stop(self) -> None:
        """End all runs and all model servers."""
        self._draining = True
        self._idle.cancel()
        for run in self._runs.values():
            run.node.ended.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._servers.stop()

    async def _find(self, join: Join) -> _Present:
        """What serves the streams of a run.

        Raises:
            RefusedError: the run is not here, or another program has gone on with it.
        """
        run = self._runs.get(join.run_id)
        if run is None:
            raise RefusedError("no such run here; it has ended, or its lease has")
        run.join = known(join, run.join)
        return _Present(run)

    # --- commands

    async def _carry_out(self, command: Command) -> Answer:
        try:
            match command:
                case OpenRun():
                    return await self._open(command)
                case EndRun():
                    return await self._end(command)
                case Here():
                    return Carried()
                case Status():
                    return await self._report()
                case Drain():
                    self._draining = command.on
                    return Carried("takes no new runs" if command.on else "takes new runs")
                case ReadLog():
                    return self._read_log(command.offset)
                case TakeLogs():
                    return await asyncio.to_thread(self._take_logs, command.run_id)
                case Renew():
                    return self._renew(command)
                case EndNode():
                    return await self._end_node()
        except AgentsimError as error:
            return Refused(type(error).__name__, f"{self._stay.host}: {error}")
        except Exception as error:  # noqa: BLE001 - whoever asked must hear of it
            _log.exception("a command failed: %s", type(command).__name__)
            return Refused("RunError", f"{self._stay.host}: a bug: {error!r}; see the node's log")

    async def _open(self, command: OpenRun) -> Opened:
        """Begin a run, unless something speaks against it."""
        if command.version != __version__:
            raise LaunchError(
                f"the node is of agentsim {__version__}, the run of {command.version}; end it "
                f"(agentsim cluster down --name {self._stay.cluster}) and start it anew"
            )
        if self._draining:
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
            servers=self._servers,
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
        log_dir = Path(command.log_dir or Path(self._config.log_dir) / command.run_id)
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

    async def _end(self, command: EndRun) -> Carried:
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
        with_ = f" with {_counted(workers, 'worker')}" if workers else ""
        return Carried(f"ended {run.name}{with_}")

    async def _end_node(self) -> Carried:
        runs, servers = len(self._runs), len(self._servers.held())
        workers = sum(run.node.workers.count for run in self._runs.values())
        await self.stop()
        ended = [
            _counted(runs, "run"),
            _counted(workers, "worker"),
            _counted(servers, "model server"),
        ]
        return Carried(f"ended, with {', '.join(filter(None, ended)) or 'nothing going on'}")

    async def _report(self) -> NodeReport:
        runs = list(self._runs.values())
        idle_s = 0.0 if runs else time.monotonic() - self._idle_from_s
        report = await self._reporter.report(
            runs, self._servers, idle_s=idle_s, draining=self._draining
        )
        if self._identity is None:
            return report
        until = self._identity.until.isoformat(timespec="seconds")
        return msgspec.structs.replace(report, certificate_until=until)

    def _renew(self, command: Renew) -> Carried:
        if self._identity is None:
            raise UserError("a node on a Unix socket has no certificate")
        if why := command.identity.unlike(self._identity):
            raise LaunchError(f"the certificate is not taken: it is {why}")
        self._identity = command.identity
        _log.info("a new certificate, until %s", command.identity.until)
        return Carried(f"has a certificate until {command.identity.until:%Y-%m-%d}")

    def _read_log(self, offset: int) -> LogPart:
        path = self._config.log.path
        if not path:
            raise UserError("the node has no log of its own")
        try:
            with Path(path).open("rb") as file:
                size = file.seek(0, 2)
                file.seek(max(0, size + offset) if offset < 0 else min(offset, size))
                data = file.read(_LOG_PART_BYTES)
                return LogPart(data, file.tell())
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from error

    def _take_logs(self, run_id: str) -> Logs:
        """The logs that a run has left in a folder of this node's; they go."""
        if not _RUN_ID.fullmatch(run_id) or run_id in self._runs:
            raise LaunchError(f"run {run_id[:64]!r} goes on, or is no name")
        folder, files = Path(self._config.log_dir) / run_id, {}
        for path in sorted(folder.glob("*.log"))[:_MOST_LOGS]:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _LOG_PART_BYTES))
                files[path.name] = file.read(_LOG_PART_BYTES)
        shutil.rmtree(folder, ignore_errors=True)
        return Logs(files)

    # --- life

    async def _host(self, run: Run) -> None:
        """Wait for a run's end, and clear up after it."""
        try:
            await run.node.ended.wait()
            await run.node.stop()
        finally:
            shutil.rmtree(run.folder, ignore_errors=True)
            self._forget_logs(run.run_id)
            del self._runs[run.run_id]
            run.gone.set()
            _log.info("run %s (%s) has ended", run.name, run.run_id)
            if not self._runs and not self.ended.is_set():
                self._idle_from_s = time.monotonic()
                loop = asyncio.get_running_loop()
                self._idle = loop.call_later(self._stay.idle_s, self._end_idle)

    def _forget_logs(self, run_id: str) -> None:
        """Of logs that nobody takes, keep those of the last runs."""
        self._logs.append(Path(self._config.log_dir) / run_id)
        if len(self._logs) > _KEPT_LOGS:
            shutil.rmtree(self._logs.popleft(), ignore_errors=True)

    def _end_idle(self) -> None:
        _log.info("no run for %.0f s: this node ends", self._stay.idle_s)
        self.ended.set()


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


async def _answer(link: Link, answer: Answer) -> None:
    await link.send(Envelope(Kind.ANSWER, ORCHESTRATOR, NODE, encode(answer)))


def _counted(number: int, name: str) -> str:
    """`1 run`, `2 runs`; nothing for none."""
    return f"{number} {name}{'s' if number > 1 else ''}" if number else ""
