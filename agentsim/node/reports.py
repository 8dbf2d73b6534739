"""What a node that stays says about itself and its machine."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from agentsim.config.models import AnsweringModel, OpenAI
from agentsim.models.endpoint_pool import EndpointStats
from agentsim.node.runs import Run
from agentsim.node.servers import Held, Servers
from agentsim.node.vitals import Vitals, gpus
from agentsim.rpc.staying import NodeReport, RunReport, ServerReport, Stay, WorkerReport
from agentsim.serving import ModelServer, server_key
from agentsim.version import __version__

# A server that has requests and has not replied for so long is no server that works slowly.
STUCK_S = 60.0
# A server that works makes a token in this time, also on a slow CPU.
_WORK_S = 1.0
# Shares of CPUs are measured over this time.
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class _Load:
    """What one run does at a model's servers."""

    run: str
    spec: AnsweringModel
    urls: list[str]
    stats: EndpointStats


class Reporter:
    """Makes reports."""

    def __init__(self, stay: Stay) -> None:
        self._stay = stay
        self._began_s = time.monotonic()
        self._vitals = Vitals()

    async def report(
        self,
        runs: Collection[Run],
        servers: Servers,
        *,
        idle_s: float,
        draining: bool,
    ) -> NodeReport:
        """How it is now.

        Args:
            idle_s: since the last run has ended; 0 while there is one.
        """
        found = asyncio.ensure_future(asyncio.to_thread(gpus))  # a driver may take its time
        self._vitals.machine()
        for run in runs:
            self._run(run)
        await asyncio.sleep(_LOOK_S)
        machine = self._vitals.machine()
        reports = await self._servers(runs, servers)
        return NodeReport(
            host=self._stay.host,
            hostname=machine.hostname,
            version=__version__,
            pid=os.getpid(),
            up_s=time.monotonic() - self._began_s,
            idle_s=idle_s,
            ends_in_s=None if runs else max(0.0, self._stay.idle_s - idle_s),
            slots=self._stay.slots,
            draining=draining,
            cpus=machine.cpus,
            cpu=machine.cpu,
            load=machine.load,
            memory_used_bytes=machine.memory_used_bytes,
            memory_bytes=machine.memory_bytes,
            runs=[self._run(run) for run in runs],
            servers=reports,
            gpus=await found,
        )

    def _run(self, run: Run) -> RunReport:
        now = time.monotonic()
        silent_s = run.node.workers.silent_s()
        workers = []
        for worker, (pid, agents) in run.node.workers.running().items():
            usage = self._vitals.process(pid)
            silent = silent_s.get(worker, 0.0)  # one that starts is not silent yet
            workers.append(WorkerReport(worker, pid, agents, usage.cpu, usage.memory_bytes, silent))
        return RunReport(
            run_id=run.run_id,
            name=run.name,
            up_s=now - run.opened_s,
            away_s=0.0 if run.streams else now - run.left_s,
            lease_s=run.lease_s,
            workers=workers,
        )

    async def _servers(self, runs: Collection[Run], servers: Servers) -> list[ServerReport]:
        """Servers of our own, used or not, and those that run elsewhere."""
        loads = [
            _Load(run.name, spec, urls, stats)
            for run in runs
            for spec, urls, stats in run.node.models.stats()
        ]
        held = servers.held()
        ours = [self._ours(server, _of(loads, key)) for key, server in held.items()]
        found = list(await asyncio.gather(*ours))
        elsewhere: dict[tuple[str, str], list[_Load]] = {}
        for load in loads:
            if isinstance(load.spec, OpenAI):
                for url in load.urls:
                    elsewhere.setdefault((load.spec.name, url), []).append(load)
        return found + [_elsewhere(model, url, of) for (model, url), of in elsewhere.items()]

    async def _ours(self, held: Held, loads: list[_Load]) -> ServerReport:
        pid = held.server.pid or 0
        state = "ended" if held.server.poll() is not None else _state(loads)
        if state == "stuck" and await _works(held.server):
            state = "serving"
        return ServerReport(
            model=held.name,
            url=held.server.base_url,
            pid=pid,
            runs=sorted({load.run for load in loads}),
            state=state,
            up_s=time.monotonic() - held.since_s,
            memory_bytes=self._vitals.process(pid).memory_bytes,
            **_sums(loads),
        )


async def _works(server: ModelServer) -> bool:
    """Whether a server makes tokens at the moment: it may be at a long reply."""
    before = await server.steps()
    await asyncio.sleep(_WORK_S)
    after = await server.steps()
    return before is not None and after is not None and after > before


def _of(loads: list[_Load], key: str) -> list[_Load]:
    return [load for load in loads if server_key(load.spec) == key]


def _elsewhere(model: str, url: str, loads: list[_Load]) -> ServerReport:
    return ServerReport(
        model=model,
        url=url,
        pid=0,
        runs=sorted({load.run for load in loads}),
        state=_state(loads),
        up_s=0.0,
        **_sums(loads),
    )


def _sums(loads: list[_Load]) -> dict[str, Any]:
    """Over all runs; the time without a reply is the shortest of those that wait for one."""
    waiting = [load.stats.quiet_s for load in loads if _busy(load)]
    return {
        "in_flight": sum(load.stats.in_flight for load in loads),
        "waiting": sum(load.stats.waiting for load in loads),
        "tokens_per_s": sum(load.stats.tokens_per_s for load in loads),
        "quiet_s": min(waiting, default=0.0),
    }


def _busy(load: _Load) -> bool:
    return load.stats.in_flight + load.stats.waiting > 0


def _state(loads: list[_Load]) -> str:
    waiting = [load.stats.quiet_s for load in loads if _busy(load)]
    if not waiting:
        return "idle"
    return "stuck" if min(waiting) >= STUCK_S else "serving"
