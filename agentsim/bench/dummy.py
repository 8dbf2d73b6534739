"""`agentsim bench dummy`: very many agents that think for a time, and answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from agentsim.bench.machine import machine
from agentsim.bench.programs import measured
from agentsim.bench.spread import spread

PARTS = ("startup", "create", "rounds", "end")


@dataclass(frozen=True, slots=True)
class Dummies:
    """What is measured.

    Attributes:
        agents, rounds, workers: how many.
        think_s: how long each agent thinks in each round.
        jitter_s: half-width of the uniform distribution around it, each agent and round its own.
        text_bytes: length of the text that each player sends with each guess.
        coroutines: agents of a user's class, each an `async def act`, in place of players of the
            `dummy` model.
        repeats: runs of which the median is told.
        memory: whether one more run looks at memory.
        out: where the directories of the runs are kept; None: nowhere.
    """

    agents: int
    rounds: int = 1
    workers: int = 2
    think_s: float = 1.0
    jitter_s: float = 0.0
    text_bytes: int = 0
    coroutines: bool = False
    repeats: int = 3
    memory: bool = True
    out: Path | None = None


def bench_dummy(
    spec: Dummies,
    *,
    measured: Callable[[str, dict[str, Any]], dict[str, Any]] = measured,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure, and say what it cost; plain data, ready for JSON.

    Each repetition is a process of its own, and one more looks at memory: looking costs CPU.

    Returns:
        what               players | coroutines
        agents, rounds_played, workers, think_s, jitter_s, text_bytes, repeats
        startup            from the start of the program until its workers are ready; the imports
                           of all processes are here, and in `total`, and nowhere else
        create             until the agents are there; players are numbers in columns, which come
                           with the first question: for them, until workers know the game
        rounds             all rounds; of players with the journal, and all rows in Parquet
        end                the summary, and ending all processes
        total              the whole program
            each part: wall_s and cpu_s (medians), and min and max of both: wall_s_min, …; CPU is
            user and system, of all processes
        round              one round: wall_s (median over all), cpu_s (rounds.cpu_s by their number)
        turns_per_cpu_s    agents x rounds / rounds.cpu_s
        cpu_us_a_turn      its inverse, in microseconds
        memory             PSS; startup_bytes (before there are agents), peak_bytes (in all),
                           bytes_an_agent_idle (after creation, less startup_bytes),
                           bytes_an_agent_in_flight (peak, less startup_bytes), by_program; null if
                           not wanted
        disk_bytes         of the run's directory
        machine            see `machine.machine`
        runs               the parts of each repetition

    Raises:
        RunError: a run failed.
    """
    name = "coroutines" if spec.coroutines else "players"
    runs = []
    for repeat in range(spec.repeats):
        tell(f"{name}, {spec.agents:,} agents: run {repeat + 1} of {spec.repeats}")
        runs.append(measured(name, _settings(spec, f"run-{repeat + 1}")))
    memory = None
    if spec.memory:
        tell(f"{name}, {spec.agents:,} agents: a run for its memory")
        looked = measured(name, _settings(spec, "memory", memory=True))
        memory = of_memory(looked["memory"], spec.agents)
    return {
        "what": name,
        "agents": spec.agents,
        "rounds_played": spec.rounds,
        "workers": spec.workers,
        "think_s": spec.think_s,
        "jitter_s": spec.jitter_s,
        "text_bytes": spec.text_bytes,
        "repeats": spec.repeats,
        **figures(runs, turns=spec.agents * spec.rounds, rounds=spec.rounds),
        "memory": memory,
        "disk_bytes": runs[0]["disk_bytes"],
        "machine": machine(),
        "runs": [
            {name: {"wall_s": wall_s, "cpu_s": cpu_s} for name, (wall_s, cpu_s) in parts.items()}
            for parts in (run["parts"] for run in runs)
        ],
    }


def figures(runs: Sequence[dict[str, Any]], *, turns: int, rounds: int) -> dict[str, Any]:
    """Medians and spread of repeated runs."""
    parts = {name: [run["parts"][name] for run in runs] for name in PARTS}
    parts["total"] = [
        [sum(part[i] for part in run["parts"].values()) for i in range(2)] for run in runs
    ]
    found: dict[str, Any] = {
        name: {
            **spread("wall_s", [wall_s for wall_s, _ in figures]),
            **spread("cpu_s", [cpu_s for _, cpu_s in figures]),
        }
        for name, figures in parts.items()
    }
    cpu_s = found["rounds"]["cpu_s"]
    found["round"] = {
        "wall_s": median(s for run in runs for s in run["rounds_s"]),
        "cpu_s": cpu_s / rounds,
    }
    found["turns_per_cpu_s"] = turns / cpu_s if cpu_s else None
    found["cpu_us_a_turn"] = cpu_s / turns * 1e6
    return found


def of_memory(looked: dict[str, dict[str, int]], agents: int) -> dict[str, Any]:
    """What agents take, from the memory of the programs before, with and during their work."""
    startup, idle, peak = (sum(looked[name].values()) for name in ("startup", "create", "most"))
    return {
        "startup_bytes": startup,
        "peak_bytes": peak,
        "bytes_an_agent_idle": (idle - startup) / agents,
        "bytes_an_agent_in_flight": (peak - startup) / agents,
        "by_program": looked,
    }


def _settings(spec: Dummies, name: str, *, memory: bool = False) -> dict[str, Any]:
    return {
        "agents": spec.agents,
        "rounds": spec.rounds,
        "workers": spec.workers,
        "think_s": spec.think_s,
        "jitter_s": spec.jitter_s,
        "text_bytes": spec.text_bytes,
        "memory": memory,
        "out": None if spec.out is None else str(spec.out / name),
    }
