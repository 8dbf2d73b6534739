"""`agentsim bench scaling`: what more workers bring, and what more agents cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from agentsim.bench.dummy import Dummies, bench_dummy
from agentsim.bench.machine import machine


def bench_scaling(
    spec: Dummies,
    *,
    workers: Sequence[int],
    sizes: Sequence[int],
    bench: Callable[..., dict[str, Any]] = bench_dummy,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure, and say how cost grows; plain data, ready for JSON.

    Args:
        spec: of each run; its `agents` are those of a strong line, and those a worker of a weak
            line when they are divided by the most workers; its `workers` those of a size.
        workers: how many, for each line of `weak` and `strong`.
        sizes: agents, for each line of `sizes`.

    Returns:
        weak     agents a worker fixed, a list
        strong   agents fixed, a list
        sizes    workers fixed, a list; each line but the first has slope_us, the CPU microseconds
                 of one more agent's turn since the line before it
            each line: agents, workers, wall_s and cpu_s of one round (medians), cpu_us_a_turn;
            CPU is that of all processes, and no import or start-up is in it
        rounds_played, think_s, jitter_s, coroutines, repeats, machine

    Raises:
        RunError: a run failed.
    """
    a_worker = max(1, spec.agents // max(workers))

    def line(agents: int, count: int) -> dict[str, Any]:
        found = bench(replace(spec, agents=agents, workers=count, memory=False), tell=tell)
        return {
            "agents": agents,
            "workers": count,
            **found["round"],
            "cpu_us_a_turn": found["cpu_us_a_turn"],
        }

    return {
        "weak": [line(a_worker * count, count) for count in workers],
        "strong": [line(spec.agents, count) for count in workers],
        "sizes": with_slopes([line(agents, spec.workers) for agents in sorted(sizes)]),
        "rounds_played": spec.rounds,
        "think_s": spec.think_s,
        "jitter_s": spec.jitter_s,
        "coroutines": spec.coroutines,
        "repeats": spec.repeats,
        "machine": machine(),
    }


def with_slopes(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of growing size, each with what one more agent costs since the line before it."""
    slopes = [
        (after["cpu_s"] - before["cpu_s"]) / (after["agents"] - before["agents"]) * 1e6
        for before, after in pairwise(lines)
    ]
    return [
        line if slope is None else {**line, "slope_us": slope}
        for line, slope in zip(lines, [None, *slopes], strict=True)
    ]
