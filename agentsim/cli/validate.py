"""`agentsim validate`: check a scenario and the files that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentsim.cli.failures import ErrorFormat, told_as
from agentsim.cli.flags import (
    Agents,
    Errors,
    File,
    Hosts,
    Rounds,
    Seed,
    Sessions,
    Set,
    Workers,
    overrides,
)

if TYPE_CHECKING:
    from agentsim.config import Loaded, LoadedSweep, LoadedWorkflow

_MOST_CELLS = 50


def validate(
    file: File,
    agents: Agents = None,
    sessions: Sessions = None,
    rounds: Rounds = None,
    seed: Seed = None,
    hosts: Hosts = None,
    workers: Workers = None,
    set_: Set = None,
    error_format: Errors = ErrorFormat.TEXT,
) -> None:
    """Check a scenario and its files and say what would run; nothing is started."""
    from agentsim.config import LoadedSweep, load_runs
    from agentsim.games import GAMES

    flags = {"agents": agents, "sessions": sessions, "rounds": rounds, "seed": seed}
    with told_as(error_format):
        changed = overrides(flags, set_)
        loaded = load_runs(file, games=GAMES, overrides=changed, hosts=hosts, workers=workers)
    if isinstance(loaded, LoadedSweep):
        print(f"{file} is valid: {describe_sweep(loaded)}")
    else:
        print(f"{file} is valid: {describe(loaded)}")


def describe_sweep(loaded: LoadedSweep) -> str:
    """How many runs there would be, what each sets, and what the first is."""
    from agentsim.config import Loaded

    scenarios = [cell.loaded.scenario for cell in loaded.cells if isinstance(cell.loaded, Loaded)]
    actions = sum(one.agents * one.rounds * one.sessions for one in scenarios)
    size = _count(len(loaded.cells), "run")
    if scenarios:
        size += f", {_count(actions, 'action')} in all"
    width = len(str(len(loaded.cells)))
    lines = [f"  {cell.number:{width}}  {cell.words}" for cell in loaded.cells]
    if len(lines) > _MOST_CELLS:
        lines[_MOST_CELLS:] = [f"  … and {len(lines) - _MOST_CELLS:,} more"]
    first = describe(loaded.cells[0].loaded)
    return "\n".join([f"{size}.", *lines, f"The first: {first}"])


def describe(loaded: Loaded | LoadedWorkflow) -> str:
    """What would run, in one paragraph."""
    from agentsim.config import Loaded, flow

    if not isinstance(loaded, Loaded):
        return _describe_workflow(loaded)
    scenario = loaded.scenario
    actions = scenario.agents * scenario.rounds * scenario.sessions
    size = " × ".join(
        (
            _count(scenario.agents, "agent"),
            _count(scenario.rounds, "round"),
            _count(scenario.sessions, "session"),
        )
    )
    game = loaded.game.model_dump(mode="json")
    rules = ", ".join(
        f"{key} {flow(game[key])}" for key in ("range", "target", "groups") if game.get(key)
    )
    sentences = [
        f"{size} of {game.get('type', 'a game')}" + (f" ({rules})" if rules else ""),
        f"{_count(actions, 'action')}, seed {scenario.seed}",
        _population(loaded),
        _model(loaded),
        _hosts(loaded),
    ]
    return ". ".join(sentence[0].upper() + sentence[1:] for sentence in sentences) + "."


def _describe_workflow(loaded: LoadedWorkflow) -> str:
    from agentsim.config import flow

    scenario = loaded.scenario
    size = f"{_count(scenario.agents, 'agent')} × {_count(scenario.sessions, 'session')}"
    model = "no model"
    if scenario.model is not None:
        model = (
            f"model {scenario.model.backend} {scenario.model.name} at temperature "
            f"{scenario.model.temperature:g}, at most {scenario.model.max_tokens:,} tokens a reply"
        )
    sentences = [
        f"{size} of {scenario.workflow}",
        f"parameters {flow(scenario.parameters)}, seed {scenario.seed}",
        _population(loaded),
        model,
        _hosts(loaded),
    ]
    return ". ".join(sentence[0].upper() + sentence[1:] for sentence in sentences) + "."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _population(loaded: Loaded | LoadedWorkflow) -> str:
    if loaded.population is None:
        return "no population"
    names = list(loaded.population.attributes)
    listed = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"population by {loaded.population.allocation}: {listed}"


def _model(loaded: Loaded) -> str:
    from agentsim.config import flow

    model = loaded.scenario.model.model_dump()
    backend = model.pop("backend")
    if backend == "replay":
        return f"replies of the run {model['run']}, prompt {loaded.scenario.prompt}"
    if "temperature" not in model:
        fields = ", ".join(f"{key} {flow(value)}" for key, value in model.items())
        return f"model {backend}" + (f" ({fields})" if fields else "")
    replies = loaded.scenario.replies
    return (
        f"model {backend} {model['name']} at temperature {model['temperature']:g}, "
        f"at most {model['max_tokens']:,} tokens a reply, {_count(replies.attempts, 'attempt')}, "
        f"prompt {loaded.scenario.prompt}"
    )


def _hosts(loaded: Loaded | LoadedWorkflow) -> str:
    hosts = loaded.hostfile.hosts
    workers = sum(host.workers for host in hosts)
    return (
        f"{_count(len(hosts), 'host')} by the {loaded.hostfile.launcher} launcher, "
        f"{_count(workers, 'worker')}"
    )
