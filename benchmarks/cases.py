"""Who is compared, and at which sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

THINKING, TOGETHER, AT_ONCE = "thinking", "together", "at-once"
WORKS = {THINKING: (1.0, 0.5), TOGETHER: (1.0, 0.0), AT_ONCE: (0.0, 0.0)}
"""What an agent does in a call: seconds of thinking, and seconds more or less, each its own."""

OURS = ""  # the environment in which this runs


@dataclass(frozen=True, slots=True)
class Case:
    """A way to do the work.

    Attributes:
        name: on the command line, and in the JSON.
        label: in tables.
        venv: its environment; a file in `requirements/`, or OURS.
        command: behind `python -m`; agents, rounds and thinking follow.
        quick, full: numbers of agents by work.
    """

    name: str
    label: str
    venv: str
    command: tuple[str, ...]
    quick: Mapping[str, tuple[int, ...]]
    full: Mapping[str, tuple[int, ...]]

    @property
    def ours(self) -> bool:
        return self.venv == OURS


_BENCH = ("agentsim", "bench", "dummy", "--json", "--repeats", "1", "--no-memory", "--workers", "2")
_GATHER = "benchmarks.peers.asyncio_gather"
_SERVERS = "benchmarks.peers.agentscope_servers"
_RAY = "benchmarks.peers.ray_actors"
_TASKS = (10_000, 100_000, 1_000_000)

CASES = (
    Case(
        "players",
        "agentsim, players",
        OURS,
        _BENCH,
        quick={THINKING: (100_000, 1_000_000)},
        full={THINKING: _TASKS, AT_ONCE: _TASKS},
    ),
    Case(
        "coroutines",
        "agentsim, users' coroutines",
        OURS,
        (*_BENCH, "--coroutines"),
        quick={THINKING: (50_000, 200_000), TOGETHER: (50_000, 200_000)},
        full={THINKING: _TASKS, TOGETHER: _TASKS, AT_ONCE: _TASKS},
    ),
    Case(
        "asyncio",
        "asyncio.gather",
        "plain",
        (_GATHER,),
        quick={THINKING: (50_000, 200_000), TOGETHER: (50_000, 200_000)},
        full={THINKING: _TASKS, TOGETHER: _TASKS, AT_ONCE: _TASKS},
    ),
    Case(
        "uvloop",
        "asyncio.gather, uvloop",
        "plain",
        (_GATHER, "--loop", "uvloop"),
        quick={THINKING: (50_000, 200_000)},
        full={THINKING: _TASKS, TOGETHER: _TASKS, AT_ONCE: _TASKS},
    ),
    Case(
        "threads",
        "a thread an agent",
        "plain",
        ("benchmarks.peers.threads",),
        quick={THINKING: (500, 2_000)},
        full={THINKING: (500, 2_000, 8_000)},
    ),
    Case(
        "ray-batch",
        "Ray, 2 actors, a call an actor",
        "ray",
        (_RAY, "--layout", "batch"),
        quick={THINKING: (10_000, 100_000)},
        full={THINKING: (10_000, 100_000), AT_ONCE: (10_000, 100_000)},
    ),
    Case(
        "ray-many",
        "Ray, 2 actors, a call an agent",
        "ray",
        (_RAY, "--layout", "many"),
        quick={THINKING: (500, 2_000)},
        full={THINKING: (1_000, 5_000), AT_ONCE: (1_000, 5_000)},
    ),
    Case(
        "ray-one",
        "Ray, an actor an agent",
        "ray",
        (_RAY, "--layout", "one"),
        quick={THINKING: (4, 8)},
        full={THINKING: (4, 12)},
    ),
    Case(
        "agentscope",
        "AgentScope 0.1.3, capacity 32 (its default)",
        "agentscope",
        (_SERVERS,),
        quick={THINKING: (64, 192)},
        full={THINKING: (128, 640), TOGETHER: (128, 640), AT_ONCE: (1_000, 5_000)},
    ),
    Case(
        "agentscope-tuned",
        "AgentScope 0.1.3, capacity 1024",
        "agentscope",
        (_SERVERS, "--capacity", "1024"),
        quick={THINKING: (400, 2_000), TOGETHER: (400, 2_000)},
        full={THINKING: (1_000, 5_000), TOGETHER: (1_000, 5_000), AT_ONCE: (1_000, 5_000)},
    ),
    Case(
        "agentscope-processes",
        "AgentScope 0.1.3, a process an agent",
        "agentscope",
        ("benchmarks.peers.agentscope_processes",),
        quick={THINKING: (4, 12)},
        full={THINKING: (4, 12, 24)},
    ),
)


@dataclass(frozen=True, slots=True)
class Goal:
    """How many times less CPU ours is to take than theirs, at least.

    Attributes:
        work: of `WORKS`.
        theirs: names of cases; the cheapest counts.
        cost: a figure of `figures.COSTS`.
    """

    work: str
    ours: str
    theirs: tuple[str, ...]
    cost: str
    times: float


_SERVERS_OF_AGENTSCOPE = ("agentscope", "agentscope-tuned")
GOALS = (
    Goal(THINKING, "players", _SERVERS_OF_AGENTSCOPE, "call", 500),
    Goal(THINKING, "players", _SERVERS_OF_AGENTSCOPE, "whole", 500),
    Goal(TOGETHER, "coroutines", _SERVERS_OF_AGENTSCOPE, "call", 200),
    Goal(TOGETHER, "coroutines", _SERVERS_OF_AGENTSCOPE, "whole", 200),
    Goal(THINKING, "players", ("asyncio",), "call", 8),
    Goal(TOGETHER, "coroutines", ("asyncio",), "call", 1.8),
)
