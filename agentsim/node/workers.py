"""A node's worker processes: started, connected, watched, ended."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import secrets
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from agentsim import children, logs
from agentsim.errors import LaunchError
from agentsim.rpc.awake import AwakeClock
from agentsim.rpc.codec import decode
from agentsim.rpc.control import Hello, Pulse, WorkerConfig
from agentsim.rpc.envelope import DATA, Envelope, Kind, WireError
from agentsim.rpc.links import StreamLink

_log = logging.getLogger(__name__)
_START_TIMEOUT_S = 60.0
# A worker that was asked to end has this time before it is killed.
_END_S = 3.0
# What waits for a worker that is being started; who sends more waits with it.
_HELD_BYTES = 8 * 1024 * 1024


@dataclass(slots=True)
class _Coming:
    """A worker that was started and is not connected.

    Attributes:
        settled: set when it is connected, or will never be.
        held: what waits for it.
        held_bytes: of all of that.
    """

    settled: asyncio.Future[None]
    held: deque[Envelope] = field(default_factory=deque)
    held_bytes: int = 0


class Workers:
    """The workers of one node.

    Args:
        folder: private folder for the socket.
        log_dir: one log a worker is written there.
        on_envelope: called with each envelope that a worker sends.
        on_exit: called with worker index, exit status and log when a worker ends unasked.
        admit: called with how many workers are about to start; raises when they may not.
    """

    def __init__(
        self,
        folder: Path,
        log_dir: Path,
        on_envelope: Callable[[Envelope], Awaitable[None]],
        on_exit: Callable[[int, int, Path], None],
        admit: Callable[[int], None] = lambda workers: None,
    ) -> None:
        self._socket = folder / "workers.sock"
        self._log_dir = log_dir
        self._on_envelope = on_envelope
        self._on_exit = on_exit
        self._admit = admit
        self._tokens: dict[int, str] = {}
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._links: dict[int, StreamLink] = {}
        self._clock = AwakeClock()
        self._last_pulse_s: dict[int, float] = {}
        self._agents: dict[int, int] = {}
        self._coming: dict[int, _Coming] = {}
        self._expected: set[int] = set()
        self._ending: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._stopping = False

    @property
    def pids(self) -> list[int]:
        """Process ids, in order of the workers' indices."""
        return [self._processes[worker].pid for worker in sorted(self._processes)]

    @property
    def count(self) -> int:
        """Workers that run or are being started."""
        ended = sum(process.returncode is not None for process in self._processes.values())
        return len(self._tokens) - len(self._expected) - ended

    def running(self) -> dict[int, tuple[int, int]]:
        """Process id, and agents as it said last, of each worker that runs."""
        return {
            worker: (process.pid, self._agents.get(worker, 0))
            for worker, process in sorted(self._processes.items())
            if process.returncode is None
        }

    def silent_s(self) -> dict[int, float]:
        """Seconds since each worker's last pulse."""
        now = self._clock.now()
        return {worker: now - last_s for worker, last_s in self._last_pulse_s.items()}

    def expect(self, workers: Sequence[int]) -> None:
        """Workers will be started: what is sent to one of them from now on waits for it."""
        loop = asyncio.get_running_loop()
        self._expected.update(workers)
        for worker in workers:
            self._tokens[worker] = secrets.token_hex(16)
            self._coming[worker] = _Coming(loop.create_future())

    async def start(self, workers: Sequence[int]) -> None:
        """Start expected workers, side by side, and wait until all are connected.

        One that ends before it is connected is told of like any other.

        Raises:
            LaunchError: one did not connect in time, or there is no room for them.
        """
        if workers and self._server is None:
            self._server = await asyncio.start_unix_server(
                self._serve, path=str(self._socket), limit=2**20
            )
        try:
            self._admit(len(workers))
        except LaunchError:
            for worker in workers:
                self._forget(worker)
            raise
        finally:
            self._expected.difference_update(workers)
        settled = [self._coming[worker].settled for worker in workers]
        await asyncio.gather(*(self._spawn(worker) for worker in workers))
        if settled:
            await asyncio.wait(settled, timeout=_START_TIMEOUT_S)
        missing = sorted(set(workers) & set(self._coming))
        if missing:
            raise LaunchError(
                f"workers {missing} did not connect within {_START_TIMEOUT_S:.0f} s; "
                f"see {self._log_of(missing[0])}"
            )

    def end(self, worker: int) -> None:
        """End one worker: ask, and kill it if it is there 3 s later. Its exit is no loss."""
        if worker in self._ending:
            return
        self._ending.add(worker)
        process = self._processes.get(worker)
        if process is not None and process.returncode is None:
            self._keep(_end(process))

    def connected(self, worker: int) -> bool:
        """Whether a worker is there to be sent to."""
        return worker in self._links

    def has(self, worker: int) -> bool:
        """Whether a worker is one of this node's."""
        return worker in self._tokens

    async def send(self, envelope: Envelope) -> None:
        """Pass an envelope on to its worker; one for a worker that has ended is dropped."""
        coming = self._coming.get(envelope.to)
        if coming is not None:
            if coming.held_bytes < _HELD_BYTES:
                coming.held.append(envelope)
                coming.held_bytes += len(envelope.body)
                return
            await asyncio.shield(coming.settled)
        link = self._links.get(envelope.to)
        if link is None:
            _log.warning("dropped a message for worker %d, which has ended", envelope.to)
            return
        with contextlib.suppress(WireError):
            await link.send(envelope)

    async def stop(self, grace_s: float = _END_S) -> None:
        """End all workers: ask, wait, kill."""
        self._stopping = True
        for process in self._processes.values():
            if process.stdin is not None:
                process.stdin.close()
        waits = [asyncio.ensure_future(p.wait()) for p in self._processes.values()]
        if waits:
            await asyncio.wait(waits, timeout=grace_s)
        for process in self._processes.values():
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
        await asyncio.gather(*waits)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            self._server.close()

    def _log_of(self, worker: int) -> Path:
        return self._log_dir / f"worker-{worker}.log"

    async def _spawn(self, worker: int) -> None:
        if worker in self._ending:  # it is not wanted any more
            self._forget(worker)
            return
        with self._log_of(worker).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "agentsim.worker"),
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self._processes[worker] = process
        log_settings = logs.settings_for(self._log_of(worker))
        config = WorkerConfig(str(self._socket), worker, self._tokens[worker], log_settings)
        await children.tell(process, msgspec.json.encode(config) + b"\n")
        self._keep(self._watch(worker, process))
        if worker in self._ending:
            self._keep(_end(process))

    async def _watch(self, worker: int, process: asyncio.subprocess.Process) -> None:
        status = await process.wait()
        self._links.pop(worker, None)
        self._last_pulse_s.pop(worker, None)
        self._settle(worker)
        if not self._stopping and worker not in self._ending:
            self._on_exit(worker, status, self._log_of(worker))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of a worker, after it has shown who it is."""
        link = StreamLink(reader, writer)
        try:
            hello = await self._greet(link)
            if hello is None:
                return
            self._last_pulse_s.setdefault(hello.worker, self._clock.now())
            if hello.stream == DATA:
                await self._join(hello.worker, link)
            while (envelope := await link.receive()) is not None:
                if envelope.sender != hello.worker:
                    _log.warning("refused a message of worker %d in another's name", hello.worker)
                elif envelope.kind is Kind.PULSE:
                    self._last_pulse_s[hello.worker] = self._clock.now()
                    self._agents[hello.worker] = decode(envelope.body, Pulse).agents
                else:
                    await self._on_envelope(envelope)
        except (WireError, msgspec.DecodeError) as error:
            _log.warning("a worker's connection broke: %s", error)
        finally:
            await link.close()

    async def _join(self, worker: int, link: StreamLink) -> None:
        """A worker is connected: give it what waited, then let others send to it directly."""
        coming = self._coming.get(worker)
        while coming is not None and coming.held:
            await link.send(coming.held.popleft())
        self._links[worker] = link
        self._settle(worker)

    def _forget(self, worker: int) -> None:
        """A worker is not started after all."""
        del self._tokens[worker]
        self._settle(worker)

    def _settle(self, worker: int) -> None:
        """A worker is not waited for any more."""
        coming = self._coming.pop(worker, None)
        if coming is not None and not coming.settled.done():
            coming.settled.set_result(None)

    async def _greet(self, link: StreamLink) -> Hello | None:
        envelope = await link.receive()
        if envelope is None or envelope.kind is not Kind.HELLO:
            _log.warning("refused a connection that did not say hello")
            return None
        try:
            hello = decode(envelope.body, Hello)
        except msgspec.DecodeError:
            _log.warning("refused a connection whose hello cannot be read")
            return None
        token = self._tokens.get(hello.worker)
        if token is None or not hmac.compare_digest(token.encode(), hello.token.encode()):
            _log.warning("refused a connection with a wrong token")
            return None
        return hello

    def _keep(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), _END_S)
    except TimeoutError:
        # One that is stopped, or holds its GIL, ends by this alone.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
