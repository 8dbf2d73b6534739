"""The run of a user's program: load → sample → launch → personas → function → results."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentsim import chat, launch, personas
from agentsim.chat import Model, Persona
from agentsim.cluster import Cluster
from agentsim.config import LoadedWorkflow
from agentsim.config.models import LanguageModel, LlamaCpp
from agentsim.errors import LimitReached, PeerLost, UserError
from agentsim.nodes import Nodes, open_nodes
from agentsim.orchestrator.ledger import Ledger
from agentsim.orchestrator.logged import logged
from agentsim.plan import RunPlan, place
from agentsim.record import Record
from agentsim.rpc.messages import PERSONAS, PLAYERS
from agentsim.workflow.asker import Asker
from agentsim.workflow.calls import Calls, Recorder
from agentsim.workflow.function import failure, find_function
from agentsim.workflow.observer import Observer
from agentsim.workflow.people import read_people
from agentsim.workflow.program import Workflow, WorkflowStopped
from agentsim.workflow.thread import Thread

_SYNC_S = 1.0


async def run_workflow(
    loaded: LoadedWorkflow,
    path: Path,
    observer: Observer,
    command: str = "",
    *,
    launcher: launch.MakeLauncher | None = None,
) -> None:
    """Run a user's function, once a session; everything about it ends up in the directory `path`.

    Args:
        loaded: the scenario with its population and hostfile.
        path: the run's directory; must not exist.
        observer: is told how it goes.
        command: what the user asked for, for the manifest.
        launcher: starts the nodes; None: what the hostfile says.

    Raises:
        UserError: something is missing; nothing was started.
        WorkflowFailed: the function raised.
        RunError: the run failed otherwise; what was completed is in its directory.
        asyncio.CancelledError: the run was interrupted; likewise.
    """
    scenario = loaded.scenario
    observer = logged(observer)
    _refuse_taken(path)
    writer = personas.writer_of(loaded)
    writes = {PERSONAS: writer.model} if writer else {}
    models = {PLAYERS: scenario.model} if scenario.model is not None else {}
    api_keys = personas.api_keys(*writes.values(), *models.values())
    function = find_function(scenario.workflow, loaded.folder)
    own = scenario.workflow.partition(":")[0]
    loaded = replace(loaded, hostfile=await launch.usable(loaded.hostfile, observer))
    cluster = Cluster(loaded.hostfile, modules=[own, *scenario.modules, *chat.MODULES])
    plan = RunPlan(place(loaded.hostfile), (), sessions_at_once=1, actions=0)
    async with Record(loaded, plan, path, command, notice=observer.notice) as record:
        await personas.draw(loaded, record.directory.personas, observer)
        observer.stage("this program keeps its own state: a run that is cut cannot go on")
        observer.stage(_starting(plan, scenario.model))
        logs = record.directory.logs
        if launcher is None:
            starter = launch.make(loaded.hostfile, logs, api_keys)
        else:
            starter = launcher(logs, api_keys)
        async with open_nodes(plan, starter, writes or models, observer.notice) as nodes:
            tokens = await personas.write(loaded, record, nodes, observer)
            served = nodes.models()
            if writes:
                await nodes.serve(models)
                served |= nodes.models()
            await record.note(endpoints=nodes.endpoints(), models=served)
            recorder = Recorder(record.ledger, observer, scenario.limits.tokens, spent=tokens)
            calls = Calls(recorder, Asker(nodes))

            def lost(error: PeerLost) -> None:
                calls.lost(error, last=not nodes.alive())

            async with (
                cluster.attached(nodes, calls.take, lost) as broken,
                _synced(record.ledger) as synced,
                _in_time(scenario.limits.wall_s, record.ledger),
            ):
                sessions = _Sessions(loaded, cluster, calls, recorder, observer, record.ledger)
                for session in range(1, scenario.sessions + 1):
                    model = _model(scenario.seed, session, nodes) if models else None
                    people = await asyncio.to_thread(
                        read_people,
                        record.directory.personas,
                        session=session,
                        agents=scenario.agents,
                    )
                    run = sessions.of(session, people, model)
                    await sessions.play(function, run, [broken, synced])
                    await asyncio.to_thread(cluster.release_all)


class _Sessions:
    """Calls the function for one session after the other."""

    def __init__(
        self,
        loaded: LoadedWorkflow,
        cluster: Cluster,
        calls: Calls,
        recorder: Recorder,
        observer: Observer,
        ledger: Ledger,
    ) -> None:
        self._ledger = ledger
        self._scenario = loaded.scenario
        self._cluster = cluster
        self._calls = calls
        self._recorder = recorder
        self._observer = observer

    def of(self, session: int, people: list[Persona], model: Model | None) -> Workflow:
        """What the function is called with."""
        scenario = self._scenario
        return Workflow(
            cluster=self._cluster,
            personas=people,
            seed=scenario.seed,
            session=session,
            sessions=scenario.sessions,
            rounds=scenario.rounds,
            parameters=scenario.parameters,
            _model=model,
            _record=self._recorder.row,
            _note=self._observer.note,
        )

    async def play(
        self, function: Callable[..., Any], run: Workflow, ends: list[asyncio.Future[None]]
    ) -> None:
        """Call the function and wait for it, or for what ends the run before.

        Raises:
            AgentsimError: it raised, or something else ended the run.
        """
        thread = Thread(function, run, self._calls.client)
        waiting: list[asyncio.Future[Any]] = [thread.ended, self._calls.failed, *ends]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not thread.ended.done():
                # The function may be waiting for room on the disk.
                self._ledger.give_up()
                stopped = WorkflowStopped("the run has ended")
                self._cluster.interrupt(stopped)
                self._calls.client.stop(stopped)
                await thread.stop()
        for end in (self._calls.failed, *ends):
            if end.done():
                end.result()
        error = thread.ended.result()
        failed = None if error is None else failure(self._scenario.workflow, error)
        if failed is not None:
            raise failed from error


def _refuse_taken(path: Path) -> None:
    if path.exists():
        raise UserError(f"{path}: exists already; a run's directory is never overwritten")


def _starting(plan: RunPlan, model: LanguageModel | None) -> str:
    hosts = ", ".join(host.address for host in plan.hosts)
    what = f"starting {plan.workers} workers on {hosts}"
    return f"{what}, with {model.name} on llama.cpp" if isinstance(model, LlamaCpp) else what


def _model(seed: int, session: int, nodes: Nodes) -> Model:
    return Model(session=session, seed=seed, structured=nodes.structured())


@asynccontextmanager
async def _synced(ledger: Ledger) -> AsyncIterator[asyncio.Task[None]]:
    """Force the journal to disk each second; what is yielded raises when that fails."""

    async def sync() -> None:
        while True:
            await asyncio.sleep(_SYNC_S)
            await ledger.sync()

    task = asyncio.ensure_future(sync())
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task


@asynccontextmanager
async def _in_time(limit_s: float | None, ledger: Ledger) -> AsyncIterator[None]:
    """End what takes longer than the scenario allows.

    Raises:
        LimitReached: it did.
    """
    try:
        async with ledger.within(limit_s) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        raise LimitReached(f"limits.wall_s: the run took longer than {limit_s:g} s") from None
