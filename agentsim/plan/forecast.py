"""What a run will ask of machines, models and money, as far as that can be told before. Pure.

A number that cannot be told is None: how long a model's prompts and replies are is known afterwards
only, so there are bounds where there are any.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from agentsim.config import Hostfile, Loaded, LoadedWorkflow
from agentsim.config.hostfile import Host
from agentsim.config.models import (
    LANGUAGE_MODELS,
    AnsweringModel,
    Dummy,
    LanguageModel,
    LlamaCpp,
    OpenAI,
)
from agentsim.config.population import ModelWriter
from agentsim.plan.plan import RunPlan, make, place

# Measured: what journal and tables hold of one action of a scripted player, and of a persona.
_ACTION_BYTES = 16
_PERSON_BYTES = 32
# A token of a reply is about so many bytes of text; the journal keeps it as it is.
_TOKEN_BYTES = 5


@dataclass(frozen=True, slots=True)
class Seat:
    """What one worker hosts: the agents `first` to `last` of every session."""

    worker: int
    host: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class HostForecast:
    """What one host runs.

    Attributes:
        address: its name.
        workers, agents: on it; agents of one session.
        listens: where its node can be reached.
        python: what starts it there.
        gpus: that it must have; None: not looked at.
    """

    address: str
    workers: int
    agents: int
    listens: str
    python: str
    gpus: int | None


@dataclass(frozen=True, slots=True)
class ModelForecast:
    """What one model will be asked.

    Attributes:
        use: players or personas.
        backend, name: of it.
        where: it is served.
        at_once: requests that are answered at the same time over all hosts; None: unknown.
        reply_tokens: most tokens of one reply.
        requests_least, requests_most: that are asked; None: unknown.
        weights_bytes: of the file that is loaded on each host; None: none is, or unknown.
    """

    use: str
    backend: str
    name: str
    where: str
    at_once: int | None
    reply_tokens: int | None
    requests_least: int | None
    requests_most: int | None
    weights_bytes: int | None = None

    @property
    def tokens_most(self) -> int | None:
        """Most tokens of all replies; None: unknown."""
        if self.requests_most is None or self.reply_tokens is None:
            return None
        return self.requests_most * self.reply_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a run will need.

    Attributes:
        name: of the scenario.
        agents, sessions, rounds: of it; rounds None for a program that gives none.
        actions: over all sessions; None for a program.
        launcher: how nodes are started; `cluster` for those that run already.
        hosts: in the order of the hostfile.
        seats: of workers that host agents; none for a program, which places its own.
        sessions_at_once: played side by side.
        players: who answers when no language model does; else empty.
        models: that are asked.
        thinking_s: that scripted players take for it in all; None: no telling.
        memory: expected bytes, as of `plan.Memory`; None: unknown.
        disk_bytes: about what the run's directory takes; None: unknown.
        disk_most_bytes: the most that replies take in it; None: unknown, or no replies.
        limit_tokens, limit_wall_s: of the scenario.
    """

    name: str
    agents: int
    sessions: int
    rounds: int | None
    actions: int | None
    launcher: str
    hosts: tuple[HostForecast, ...]
    seats: tuple[Seat, ...]
    sessions_at_once: int
    players: str
    models: tuple[ModelForecast, ...]
    thinking_s: float | None
    memory: dict[str, Any] | None
    disk_bytes: int | None
    disk_most_bytes: int | None
    limit_tokens: int | None
    limit_wall_s: float | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        models = [{**asdict(model), "tokens_most": model.tokens_most} for model in self.models]
        return {**asdict(self), "models": models}


def forecast(loaded: Loaded | LoadedWorkflow) -> Forecast:
    """What a run will need."""
    scenario, hostfile = loaded.scenario, loaded.hostfile
    game = isinstance(loaded, Loaded)
    if isinstance(loaded, Loaded):
        plan = make(loaded.scenario, hostfile)
    else:
        plan = RunPlan(place(hostfile), (), sessions_at_once=1, actions=0)
    models = tuple(_models(loaded))
    return Forecast(
        name=scenario.name,
        agents=scenario.agents,
        sessions=scenario.sessions,
        rounds=scenario.rounds,
        actions=plan.actions if game else None,
        launcher="cluster" if hostfile.cluster is not None else str(hostfile.launcher),
        hosts=tuple(_hosts(plan, hostfile)),
        seats=tuple(_seats(plan)),
        sessions_at_once=plan.sessions_at_once,
        players=_players(loaded),
        models=models,
        thinking_s=_thinking_s(loaded, plan),
        memory=None if plan.memory is None else asdict(plan.memory),
        disk_bytes=_disk(loaded, plan, models),
        disk_most_bytes=_replies_bytes(models),
        limit_tokens=scenario.limits.tokens,
        limit_wall_s=scenario.limits.wall_s,
    )


def writer_of(loaded: Loaded | LoadedWorkflow) -> ModelWriter | None:
    """Who writes a run's people; None when no model does."""
    if loaded.population is None or loaded.made is not None:
        return None
    writer = loaded.population.persona
    return writer if isinstance(writer, ModelWriter) else None


def _seats(plan: RunPlan) -> Iterator[Seat]:
    names = [host.address for host in plan.hosts for _ in range(host.workers)]
    for shard in plan.shards:
        yield Seat(shard.worker, names[shard.worker], shard.first, shard.first + shard.count - 1)


def _hosts(plan: RunPlan, hostfile: Hostfile) -> Iterator[HostForecast]:
    for host, placed in zip(hostfile.hosts, plan.hosts, strict=True):
        own = range(placed.first_worker, placed.first_worker + placed.workers)
        agents = sum(shard.count for shard in plan.shards if shard.worker in own)
        local = hostfile.launcher == "local" and hostfile.cluster is None
        yield HostForecast(
            address=host.address,
            workers=host.workers,
            agents=agents,
            listens="a Unix socket" if local else _listens(host, hostfile),
            python="the one that runs here" if local else host.python or "found on the host",
            gpus=host.gpus,
        )


def _listens(host: Host, hostfile: Hostfile) -> str:
    if hostfile.cluster is not None:
        return f"the cluster {hostfile.cluster}, where it stays"
    if hostfile.transport == "tunnel":
        return "through ssh"
    port = "any free port" if host.port in (0, "0") else f"port {host.port}"
    return f"{port} of {host.advertise or host.address}"


def _players(loaded: Loaded | LoadedWorkflow) -> str:
    model = loaded.scenario.model
    if isinstance(loaded, LoadedWorkflow):
        return loaded.scenario.workflow
    return "" if isinstance(model, LANGUAGE_MODELS) else model.backend if model else ""


def _models(loaded: Loaded | LoadedWorkflow) -> Iterator[ModelForecast]:
    scenario, hosts = loaded.scenario, len(loaded.hostfile.hosts)
    people = scenario.agents * scenario.sessions
    writer = writer_of(loaded)
    if writer is not None:
        bounds = people, people * writer.attempts
        yield _model("personas", writer.model, hosts, bounds)
    if isinstance(loaded, LoadedWorkflow):
        if loaded.scenario.model is not None:
            yield _model("players", loaded.scenario.model, hosts, (None, None))
        return
    model = loaded.scenario.model
    if isinstance(model, LANGUAGE_MODELS):
        actions = people * loaded.scenario.rounds
        bounds = actions, actions * loaded.scenario.replies.attempts
        yield _model("players", model, hosts, bounds)


def _model(
    use: str,
    model: AnsweringModel,
    hosts: int,
    requests: tuple[int | None, int | None],
) -> ModelForecast:
    where, at_once, name, tokens = "recorded replies of a run", None, "", None
    if isinstance(model, LanguageModel):
        name, tokens = model.name, model.max_tokens
    if isinstance(model, LlamaCpp):
        where = "llama.cpp on each host, at a free port of its loopback"
        at_once = model.slots * hosts
    elif isinstance(model, OpenAI):
        where = f"{model.base_url}, asked by each host"
        at_once = model.concurrency * hosts
    return ModelForecast(use, model.backend, name, where, at_once, tokens, *requests)


def _thinking_s(loaded: Loaded | LoadedWorkflow, plan: RunPlan) -> float | None:
    model = loaded.scenario.model
    if not isinstance(loaded, Loaded) or not isinstance(model, Dummy):
        return None
    turns = math.ceil(loaded.scenario.sessions / plan.sessions_at_once) * loaded.scenario.rounds
    return turns * (model.think_s + min(model.jitter_s, model.think_s))


def _disk(
    loaded: Loaded | LoadedWorkflow, plan: RunPlan, models: tuple[ModelForecast, ...]
) -> int | None:
    """What the run's directory takes; no telling where prompts and replies are kept."""
    if models or isinstance(loaded, LoadedWorkflow):
        return None
    people = loaded.scenario.agents * loaded.scenario.sessions if loaded.population else 0
    return plan.actions * _ACTION_BYTES + people * _PERSON_BYTES


def _replies_bytes(models: tuple[ModelForecast, ...]) -> int | None:
    tokens = [model.tokens_most for model in models]
    if not tokens or None in tokens:
        return None
    return sum(number or 0 for number in tokens) * _TOKEN_BYTES
