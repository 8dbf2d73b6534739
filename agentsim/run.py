"""The pipeline: load → sample → plan → launch → personas → rounds → results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agentsim import launch, personas, plan
from agentsim.config import Loaded, RecordedRun, recorded_run
from agentsim.config.models import LANGUAGE_MODELS, LlamaCpp, Replay
from agentsim.games.guess_average import GuessAverageSpec
from agentsim.nodes import Nodes, open_nodes
from agentsim.orchestrator.course import RunSpec
from agentsim.orchestrator.logged import logged
from agentsim.orchestrator.observer import Observer
from agentsim.orchestrator.play import Play
from agentsim.orchestrator.reply_format import reply_format
from agentsim.record import Record, refuse_existing
from agentsim.results import RunDirectory, read_manifest, recorded_replies
from agentsim.rpc.messages import PERSONAS, PLAYERS


async def run(
    loaded: Loaded,
    path: Path,
    observer: Observer,
    command: str = "",
    *,
    launcher: launch.MakeLauncher | None = None,
    resume: bool = False,
) -> None:
    """Play a scenario, or go on with it; everything about it ends up in the directory `path`.

    Args:
        loaded: the scenario with its population and hostfile.
        path: the run's directory; must not exist, but to go on with.
        observer: is told how it goes.
        command: what the user asked for, for the manifest.
        launcher: starts the nodes; None: what the hostfile says.
        resume: go on with the run that is there: what is in its journal is not done again.

    Raises:
        UserError: something is missing; nothing was started.
        RunError: the run failed; what was completed is in its directory.
        asyncio.CancelledError: the run was interrupted; likewise.
    """
    scenario, game = loaded.scenario, loaded.game
    assert isinstance(game, GuessAverageSpec)  # the only game there is
    observer = logged(observer)
    if not resume:
        refuse_existing(path)
    if launcher is None:
        loaded = replace(loaded, hostfile=await launch.usable(loaded.hostfile, observer))
    written = resume and RunDirectory(path).personas.exists()
    writer = None if written else personas.writer_of(loaded)
    writes = {PERSONAS: writer.model} if writer else {}
    plays = {PLAYERS: scenario.model} if isinstance(scenario.model, LANGUAGE_MODELS) else {}
    api_keys = personas.api_keys(*writes.values(), *plays.values())
    replayed = recorded_run(scenario.model) if isinstance(scenario.model, Replay) else None
    run_plan = plan.make(scenario, loaded.hostfile)
    async with Record(
        loaded, run_plan, path, command, notice=observer.notice, resume=resume
    ) as record:
        await personas.draw(loaded, record.directory.personas, observer)
        observer.stage(_starting(run_plan, loaded))
        logs = record.directory.logs
        if launcher is None:
            starter = launch.make(loaded.hostfile, logs, api_keys)
        else:
            starter = launcher(logs, api_keys)
        async with open_nodes(run_plan, starter, writes or plays, observer.notice) as nodes:
            await personas.write(loaded, record, nodes, observer)
            models = nodes.models()
            if writes:
                await nodes.serve(plays)
                models |= nodes.models()
            if replayed:
                await _replay(replayed, record, nodes, observer)
            observer.stage(f"placing {scenario.agents:,} agents")
            format = reply_format(
                scenario,
                structured=nodes.structured(),
                recorded=replayed.format if replayed else None,
                before=read_manifest(path).get("reply_format"),
            )
            await record.note(
                endpoints=nodes.endpoints(),
                reply_format=format if plays else None,
                models=models,
            )
            await Play(
                RunSpec(scenario, game, run_plan, record.model),
                nodes,
                ledger=record.ledger,
                directory=record.directory,
                observer=observer,
                format=format,
            ).run(resume=resume)
            observer.stage("summing up")


async def _replay(replayed: RecordedRun, record: Record, nodes: Nodes, observer: Observer) -> None:
    """Give the nodes the replies of a run that is replayed."""
    observer.stage(f"taking the replies of {replayed.path}")
    facts = {"run": str(replayed.path), "run_id": replayed.run_id, "model": replayed.model}
    await record.note(replay={**facts, "reply_format": replayed.format})
    await nodes.replay(PLAYERS, recorded_replies(replayed.path))


def _starting(run_plan: plan.RunPlan, loaded: Loaded) -> str:
    hosts = ", ".join(host.address for host in run_plan.hosts)
    what = f"starting {run_plan.workers} workers on {hosts}"
    if isinstance(loaded.scenario.model, LlamaCpp):
        what += f", with {loaded.scenario.model.name} on llama.cpp"
    return what
