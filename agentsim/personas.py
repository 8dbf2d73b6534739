"""Personas before and without a game: made ahead into a file of their own, or in a run."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from agentsim import launch, logs, plan, serving
from agentsim.config import Hostfile, Loaded, LoadedWorkflow, Population
from agentsim.config.models import AnsweringModel, OpenAI
from agentsim.config.population import ModelWriter
from agentsim.errors import DiskFull, UserError
from agentsim.nodes import Nodes, open_nodes
from agentsim.orchestrator.ledger import Ledger
from agentsim.orchestrator.limits import check_tokens
from agentsim.orchestrator.observer import Watcher
from agentsim.orchestrator.personas import People, Stage, by_person
from agentsim.population import Meta, copy_personas, write_personas
from agentsim.population.meta_prompt import Format
from agentsim.record import Record
from agentsim.results import Journal, Kind, RunEnd, frames, to_json
from agentsim.results.persona_stage import (
    persona_reasons,
    persona_summary,
    write_persona_requests,
)
from agentsim.rpc.codec import decode
from agentsim.rpc.messages import PERSONAS, Attempt


@dataclass(frozen=True, slots=True)
class Order:
    """Personas that are to be made ahead.

    Attributes:
        population: who is drawn, and who writes.
        agents: of each session.
        sessions: how many; each has its own draw.
        seed: of the draws, and of the model's.
        hostfile: where the model is served.
        path: the file; it must not exist.
    """

    population: Population
    agents: int
    sessions: int
    seed: int
    hostfile: Hostfile
    path: Path

    @property
    def journal(self) -> Path:
        """Every attempt of the model, with its prompt and reply; beside the file."""
        return self.path.with_name(f"{self.path.name}.journal")


class Begun(msgspec.Struct, frozen=True):
    """The first record of such a journal: what is made.

    Attributes:
        run_id: tells journals apart.
        order: what decides which personas come out, by name; where a server is does not.
        started: UTC, ISO 8601.
    """

    run_id: str
    order: dict[str, Any]
    started: str


async def make(
    order: Order, observer: Watcher, *, launcher: launch.MakeLauncher | None = None
) -> None:
    """Make a file of personas; what an earlier, interrupted call has made is not made again.

    Args:
        order: what is made.
        observer: is told how it goes.
        launcher: starts the nodes of a model that writes; None: what the hostfile says.

    Raises:
        UserError: the file exists, something is missing, or the journal is of another order.
        RunError: it failed; what was written by then is in the journal.
        asyncio.CancelledError: it was interrupted; likewise.
    """
    _refuse_path(order.path)
    writer = order.population.persona
    if not isinstance(writer, ModelWriter):
        await asyncio.to_thread(_write, order, None)
        return
    keys = api_keys(writer.model)
    order = replace(order, hostfile=await launch.usable(order.hostfile, observer))
    began_s = time.monotonic()
    with _journal(order) as journal:
        known = by_person(_attempts(order.journal))
        where = ", ".join(host.address for host in order.hostfile.hosts)
        observer.stage(f"starting {writer.model.name} on {where}")
        async with _nodes(order, writer, keys, observer, launcher) as nodes:
            people = people_of(
                order.population, writer, (order.agents, order.sessions, order.seed), nodes
            )
            ledger = Ledger(journal, observer.notice)
            written = await Stage(nodes, people, ledger=ledger, observer=observer).run(known)
        await ledger.written(lambda: _write(order, written))
        end = RunEnd("finished", wall_s=time.monotonic() - began_s, ended=_now())
        await ledger.append(Kind.END, to_json(end))


def people_of(
    population: Population, writer: ModelWriter, size: tuple[int, int, int], nodes: Nodes
) -> People:
    """Who is to be written, in the format that the servers enforce.

    Args:
        size: agents of a session, sessions, seed.
    """
    agents, sessions, seed = size
    format: Format = "json" if nodes.structured(PERSONAS) else "text"
    return People(population, agents, sessions, Meta(writer, format, seed))


def writer_of(loaded: Loaded | LoadedWorkflow) -> ModelWriter | None:
    """Who writes the personas of a run; None when no model does, or they were made before."""
    if loaded.population is None or loaded.made is not None:
        return None
    writer = loaded.population.persona
    return writer if isinstance(writer, ModelWriter) else None


async def draw(loaded: Loaded | LoadedWorkflow, path: Path, observer: Watcher) -> None:
    """Write a run's people, where no model has to: drawn, or taken from a file made before; and
    where they are not there yet, since the run goes on.

    Raises:
        ResultsError: the file cannot be read or written.
    """
    scenario = loaded.scenario
    agents, sessions = scenario.agents, scenario.sessions
    if loaded.population is None or writer_of(loaded) is not None:
        return
    if await asyncio.to_thread(path.exists):
        return
    if loaded.made is not None:
        observer.stage(f"taking {agents * sessions:,} people from {loaded.made.path}")
        await asyncio.to_thread(copy_personas, path, loaded.made, agents=agents, sessions=sessions)
        return
    observer.stage(f"drawing {agents * sessions:,} people")
    await asyncio.to_thread(
        write_personas,
        path,
        loaded.population,
        agents=agents,
        sessions=sessions,
        seed=scenario.seed,
    )


async def write(
    loaded: Loaded | LoadedWorkflow, record: Record, nodes: Nodes, observer: Watcher
) -> int:
    """Let the model write a run's people, where it does; the tokens that it took.

    Every attempt is journaled with round 0, and ends up in the table `requests`. What is in the
    journal already is not asked again.

    Args:
        nodes: it serves the model `personas`.

    Raises:
        RunError: the model gives no replies, a node was lost, a limit was reached, or the disk is
            full.
    """
    scenario, population, writer = loaded.scenario, loaded.population, writer_of(loaded)
    if population is None or writer is None:
        return 0
    if await asyncio.to_thread(record.directory.personas.exists):
        return 0
    size = scenario.agents, scenario.sessions, scenario.seed
    stage = Stage(
        nodes,
        people_of(population, writer, size, nodes),
        ledger=record.ledger,
        observer=observer,
        spent=lambda tokens: check_tokens(tokens, scenario.limits),
    )
    try:
        known = by_person(_attempts(record.directory.journal))
        written = await stage.run(known)
    except BaseException:
        with contextlib.suppress(DiskFull):
            await asyncio.to_thread(write_persona_requests, record.directory, stage.recorded)
        raise

    def save() -> None:
        write_persona_requests(record.directory, stage.recorded)
        write_personas(
            record.directory.personas,
            population,
            agents=scenario.agents,
            sessions=scenario.sessions,
            seed=scenario.seed,
            written=written,
        )

    await record.ledger.written(save)
    await record.note(personas=await asyncio.to_thread(persona_summary, record.directory))
    return stage.tokens


def api_keys(*models: AnsweringModel) -> dict[str, str]:
    """The keys of models' endpoints, by the names of their variables.

    Raises:
        UserError: a package, a model file or a key is missing.
    """
    keys = {}
    for model in models:
        serving.check(model)
        if isinstance(model, OpenAI) and model.api_key_env is not None:
            keys[model.api_key_env] = os.environ[model.api_key_env]
    logs.hide(keys.values())
    return keys


def reasons_of(journal: Path) -> list[dict[str, Any]]:
    """Why attempts in a journal were not used: see `results.persona_reasons`."""
    return persona_reasons((attempt.status, attempt.reason) for attempt in _attempts(journal))


def _write(order: Order, written: Any) -> None:
    write_personas(
        order.path,
        order.population,
        agents=order.agents,
        sessions=order.sessions,
        seed=order.seed,
        written=written,
    )


@asynccontextmanager
async def _nodes(
    order: Order,
    writer: ModelWriter,
    keys: dict[str, str],
    observer: Watcher,
    launcher: launch.MakeLauncher | None,
) -> AsyncIterator[Nodes]:
    """Nodes that call models and have no workers. Their logs go when all went well."""
    folder = Path(tempfile.mkdtemp(prefix="agentsim-personas-"))
    try:
        async with open_nodes(
            plan.without_workers(order.hostfile),
            launcher(folder, keys) if launcher else launch.make(order.hostfile, folder, keys),
            {PERSONAS: writer.model},
            observer.notice,
        ) as nodes:
            yield nodes
    except asyncio.CancelledError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _journal(order: Order) -> Iterator[Journal]:
    """The order's journal: begun, or gone on with."""
    exists = order.journal.exists()
    with Journal.open(order.journal) if exists else Journal.create(order.journal) as journal:
        first = next(frames(order.journal), None)
        if first is not None:
            _refuse_another(order, first.body)
        else:
            begun = Begun(secrets.token_hex(8), _identity(order), _now())
            journal.append(Kind.RUN, msgspec.json.encode(begun))
        yield journal


def _refuse_another(order: Order, body: bytes) -> None:
    """Refuse a journal whose first record is of another order."""
    try:
        there = msgspec.json.decode(body, type=Begun).order
    except msgspec.DecodeError:
        raise UserError(f"{order.journal}: is not a journal of `agentsim personas`") from None
    wanted = _identity(order)
    other = [f"{n} {there.get(n)}, not {wanted[n]}" for n in wanted if there.get(n) != wanted[n]]
    if other:
        raise UserError(
            f"{order.journal}: was begun with {'; '.join(other)}. To go on with it, ask for the "
            "same; to begin anew, delete it or name another file"
        )


def _refuse_path(path: Path) -> None:
    if os.path.lexists(path):
        raise UserError(f"{path}: exists already; a file of personas is never overwritten")
    if not path.parent.is_dir():
        raise UserError(f"{path.parent}: there is no such directory")


def _identity(order: Order) -> dict[str, Any]:
    """What decides which personas come out."""
    writer = order.population.persona
    assert isinstance(writer, ModelWriter)
    drawn = order.population.model_dump_json(include={"attributes", "allocation"})
    return {
        "population": hashlib.sha256(drawn.encode()).hexdigest()[:16],
        "agents": order.agents,
        "sessions": order.sessions,
        "seed": order.seed,
        "persona.language": writer.language,
        "persona.attempts": writer.attempts,
        "persona.model.backend": writer.model.backend,
        "persona.model.name": writer.model.name,
        "persona.model.temperature": writer.model.temperature,
        "persona.model.max_tokens": writer.model.max_tokens,
    }


def _attempts(journal: Path) -> Iterator[Attempt]:
    for frame in frames(journal):
        if frame.kind is Kind.ATTEMPTS:
            yield from decode(frame.body, list[Attempt])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
