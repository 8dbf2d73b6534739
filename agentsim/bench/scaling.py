"""`agentsim bench scaling`: what more workers bring, and what more agents cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

from agentsim.bench.dummy import Dummies, bench_dummy
from agentsim.bench.machine import machine
from agentsim.bench.spread import spread

_Shape = tuple[int, int]
"""Agents, and workers."""


def bench_scaling(
    spec: Dummies,
    *,
    workers: Sequence[int],
    sizes: Sequence[int],
    bench: Callable[..., dict[str, Any]] = bench_dummy,
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure, and say how cost grows; plain data, ready for JSON.

    A repeat runs all lines before the next one does: what disturbs a repeat disturbs all its lines.

    Args:
        spec: of each run; its `agents` are those of a strong line, and those a worker of a weak
            line when they are divided by the most workers; its `workers` those of a size.
        workers: how many, for each line of `weak` and `strong`.
        sizes: agents, for each line of `sizes`; one that is named twice is one line.

    Returns:
        weak     agents a worker fixed, a list
        strong   agents fixed, a list
        sizes    workers fixed, a list; each line but the first has slope_us, the CPU microseconds
                 of one more agent's turn since the line before it
            each line: agents, workers, wall_s and cpu_s of one round, cpu_us_a_turn; slope_us,
            wall_s and cpu_s are medians, with _min and _max; CPU is that of all processes, and no
            import or start-up is in it
        rounds_played, think_s, jitter_s, coroutines, repeats, machine

    Raises:
        RunError: a run failed.
    """
    a_worker = max(1, spec.agents // max(workers))
    tables = {
        "weak": [(a_worker * count, count) for count in workers],
        "strong": [(spec.agents, count) for count in workers],
        "sizes": [(agents, spec.workers) for agents in sorted(set(sizes))],
    }
    rounds: dict[_Shape, list[dict[str, float]]] = {}
    for repeat in range(1, spec.repeats + 1):
        for shape in dict.fromkeys(chain.from_iterable(tables.values())):
            agents, count = shape
            tell(f"{agents:,} agents, workers: {count}: run {repeat} of {spec.repeats}")
            one = replace(spec, agents=agents, workers=count, repeats=1, memory=False)
            rounds.setdefault(shape, []).append(bench(one)["round"])
    lines = {name: [_line(shape, rounds[shape]) for shape in tables[name]] for name in tables}
    for line, (few, many) in zip(lines["sizes"][1:], pairwise(tables["sizes"]), strict=True):
        line |= spread("slope_us", _slopes_us(few, many, rounds))
    return {
        **lines,
        "rounds_played": spec.rounds,
        "think_s": spec.think_s,
        "jitter_s": spec.jitter_s,
        "coroutines": spec.coroutines,
        "repeats": spec.repeats,
        "machine": machine(),
    }


def _line(shape: _Shape, rounds: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    agents, workers = shape
    figures = spread("cpu_s", [one["cpu_s"] for one in rounds])
    return {
        "agents": agents,
        "workers": workers,
        **spread("wall_s", [one["wall_s"] for one in rounds]),
        **figures,
        "cpu_us_a_turn": figures["cpu_s"] / agents * 1e6,
    }


def _slopes_us(
    few: _Shape, many: _Shape, rounds: Mapping[_Shape, Sequence[Mapping[str, float]]]
) -> list[float]:
    """What one more agent costs between two sizes, in each repeat."""
    return [
        (after["cpu_s"] - before["cpu_s"]) / (many[0] - few[0]) * 1e6
        for before, after in zip(rounds[few], rounds[many], strict=True)
    ]
