"""Runs as they are kept, and the figures that come of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from statistics import median
from typing import Any

from benchmarks.cases import Case, Goal
from benchmarks.runner import Outcome
from benchmarks.slopes import Spread, ratio, slopes

COSTS = {
    "call": "rounds_cpu_s",
    "create": "create_cpu_s",
    "whole": "cpu_s",
    "memory": "peak_pss_bytes",
}
"""Costs of one more agent: the field of a run that each is the slope of."""


@dataclass(frozen=True, slots=True)
class Run:
    """One program at one size. Seconds and bytes; `error` says why there are none.

    Attributes:
        wall_s, cpu_s: the whole program, seen from outside.
        startup_…, create_…, rounds_…: its parts, as it says; `startup` holds the imports.
        peak_pss_bytes: see `runner.Outcome`.
        others_cpu_s: CPU that others took on this machine meanwhile.
    """

    case: str
    work: str
    agents: int
    repeat: int
    error: str = ""
    wall_s: float = 0.0
    cpu_s: float = 0.0
    startup_wall_s: float = 0.0
    startup_cpu_s: float = 0.0
    create_wall_s: float = 0.0
    create_cpu_s: float = 0.0
    rounds_wall_s: float = 0.0
    rounds_cpu_s: float = 0.0
    peak_pss_bytes: int = 0
    others_cpu_s: float = 0.0


MEASURED = [field.name for field in fields(Run)][5:]


def read(case: Case, work: str, agents: int, repeat: int, outcome: Outcome) -> Run:
    """The run of which an outcome tells."""
    said = outcome.said
    # Ray's processes hide from the system what their children took; the program has seen it.
    cpu_s = max(outcome.cpu_s, sum(said[part]["cpu_s"] for part in ("startup", "create", "rounds")))
    parts: dict[str, Any] = {
        f"{part}_{figure}": round(said[part][figure], 6)
        for part in ("startup", "create", "rounds")
        for figure in ("wall_s", "cpu_s")
    }
    return Run(
        case.name,
        work,
        agents,
        repeat,
        wall_s=round(outcome.wall_s, 3),
        cpu_s=round(cpu_s, 3),
        **parts,
        peak_pss_bytes=max(outcome.peak_pss_bytes, said.get("pss_bytes", 0)),
        others_cpu_s=round(max(0.0, outcome.busy_cpu_s - cpu_s), 2),
    )


@dataclass(frozen=True, slots=True)
class Figures:
    """Runs, and what they say."""

    runs: Sequence[Run]

    def of(self, case: str, work: str) -> list[Run]:
        """The runs of a case that did their work."""
        return [run for run in self.runs if run.case == case and run.work == work and not run.error]

    def costs(self, case: str, work: str, cost: str) -> dict[int, dict[int, float]]:
        """By repeat and number of agents."""
        found: dict[int, dict[int, float]] = {}
        for run in self.of(case, work):
            found.setdefault(run.repeat, {})[run.agents] = getattr(run, COSTS[cost])
        return found

    def slopes(self, case: str, work: str, cost: str) -> dict[int, float]:
        """One more agent's, by repeat; empty if no repeat has two sizes."""
        return slopes(self.costs(case, work, cost))

    def ratio(self, theirs: str, ours: str, work: str, cost: str) -> Spread | None:
        """How many times ours theirs is; None if it was not measured."""
        try:
            return ratio(self.slopes(theirs, work, cost), self.slopes(ours, work, cost))
        except ValueError:
            return None

    def reached(self, goal: Goal) -> tuple[str, Spread] | None:
        """The cheapest of a goal's peers, and how many times ours it takes; None if unmeasured."""
        ratios = [(name, self.ratio(name, goal.ours, goal.work, goal.cost)) for name in goal.theirs]
        found = [(name, times) for name, times in ratios if times is not None]
        return min(found, key=lambda item: item[1].median, default=None)

    def middle(self, case: str, work: str, agents: int) -> dict[str, float]:
        """The median of each figure over the repeats of a size."""
        runs = [run for run in self.of(case, work) if run.agents == agents]
        return {name: median(getattr(run, name) for run in runs) for name in MEASURED}

    def sizes(self, case: str, work: str) -> list[int]:
        """The numbers of agents that were measured."""
        return sorted({run.agents for run in self.of(case, work)})

    def others_share(self) -> float:
        """CPU of others, as a share of all CPU that the machine spent while these ran."""
        others = sum(run.others_cpu_s for run in self.runs)
        return others / ((others + sum(run.cpu_s for run in self.runs)) or 1.0)


def failures(runs: Iterable[Run]) -> list[Run]:
    """The runs that did not do their work."""
    return [run for run in runs if run.error]
