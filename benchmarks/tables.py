"""Figures as Markdown, and their places in a page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from benchmarks.cases import CASES, GOALS, THINKING, TOGETHER, WORKS
from benchmarks.figures import COSTS, Figures, failures
from benchmarks.slopes import Spread, steps

_OURS = [case for case in CASES if case.ours]


def sections(figures: Figures, machine: Mapping[str, str]) -> dict[str, str]:
    """Markdown by the name of its place."""
    found = {"machine": machine_list(figures, machine), "goals": goals(figures)}
    for work in WORKS:
        found[work] = slopes_table(figures, work)
        found[f"{work}-sizes"] = sizes_table(figures, work)
        found[f"{work}-steps"] = steps_table(figures, work)
    return {name: text for name, text in found.items() if text}


def put(page: str, found: Mapping[str, str]) -> str:
    """A page with each text between `<!-- NAME -->` and `<!-- /NAME -->`.

    Texts without a place are left out.
    """
    for name, text in found.items():
        place = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if match := place.search(page):
            page = f"{page[: match.end(1)]}\n{text}\n\n{page[match.start(2) :]}"
    return page


def places(page: str) -> dict[str, str]:
    """What stands in the places of a page, by their names."""
    return {
        match["name"]: match["text"].strip()
        for match in re.finditer(
            r"<!-- (?P<name>[\w-]+) -->\n(?P<text>.*?)<!-- /(?P=name) -->", page, re.DOTALL
        )
    }


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, whose first column is words; empty without rows."""
    if not rows:
        return ""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(value: float) -> str:
    """A number with three digits that count, and at most two decimals."""
    if abs(value) < 0.005:
        return "0"
    digits = 0
    for limit in (100, 10):
        digits += abs(value) < limit
    rounded = float(f"{value:.3g}") if abs(value) >= 100 else value
    return f"{rounded:,.{digits}f}"


def spread(found: Spread | None, scale: float = 1.0) -> str:
    """The median, and the least and most of several repeats."""
    if found is None:
        return ""
    if found.median <= 0:
        return "≈ 0"  # of what does not depend on agents, only noise is left
    middle, least, most = (
        figure(value * scale) for value in (found.median, found.least, found.most)
    )
    return middle if least == most else f"{middle} ({least} to {most})"


def slopes_table(figures: Figures, work: str) -> str:
    """What one more agent costs each, and how many times ours that is."""
    rows = []
    for case in CASES:
        sizes = figures.sizes(case.name, work)
        if len(sizes) < 2:
            continue
        found = {
            cost: Spread.of(by.values())
            for cost in COSTS
            if (by := figures.slopes(case.name, work, cost))
        }
        times = [
            spread(figures.ratio(case.name, ours.name, work, "call")) if not case.ours else ""
            for ours in _OURS
        ]
        most = figures.middle(case.name, work, sizes[-1])
        rows.append(
            [
                case.label,
                spread(found["call"], 1e6),
                *times,
                spread(found["create"], 1e6),
                spread(found["whole"], 1e6),
                spread(found["memory"]),
                figure(sizes[-1] / most["rounds_wall_s"]),
            ]
        )
    head = [
        "",
        "a call, CPU µs",
        "times players'",
        "times coroutines'",
        "creating it, CPU µs",
        "in all, CPU µs",
        "memory, bytes",
        "calls a second",
    ]
    return table(head, rows)


def sizes_table(figures: Figures, work: str) -> str:
    """The medians that the slopes come of."""
    rows = []
    for case in CASES:
        for agents in figures.sizes(case.name, work):
            found = figures.middle(case.name, work, agents)
            rows.append(
                [
                    case.label,
                    f"{agents:,}",
                    *(figure(found[f"{part}_wall_s"]) for part in ("startup", "create", "rounds")),
                    *(figure(found[f"{part}_cpu_s"]) for part in ("startup", "create", "rounds")),
                    figure(found["cpu_s"]),
                    figure(found["peak_pss_bytes"] / 1e6),
                ]
            )
    parts = ("start-up", "creation", "calls")
    head = ["", "agents", *(f"{part}, s" for part in parts)]
    return table([*head, *(f"{part}, CPU s" for part in parts), "all, CPU s", "peak MB"], rows)


def steps_table(figures: Figures, work: str) -> str:
    """The slope of a call between each size and the next."""
    rows = []
    for case in CASES:
        found = steps(figures.costs(case.name, work, "call"))
        if len(found) > 1:
            for (few, many), slope in sorted(found.items()):
                rows.append([case.label, f"{few:,} to {many:,}", spread(slope, 1e6)])
    return table(["", "agents", "a call, CPU µs"], rows)


def goals(figures: Figures) -> str:
    """What was wanted, and what was found."""
    labels = {case.name: case.label for case in CASES}
    costs = {"call": "a call", "whole": "creation and a call"}
    works = {THINKING: "1 s ± 0.5 s", TOGETHER: "1 s"}
    rows = []
    for goal in GOALS:
        found = figures.reached(goal)
        if found is None:
            continue
        name, times = found
        met = "yes" if times.median >= goal.times else "**no**"
        cells = (labels[name], works[goal.work], costs[goal.cost], f"{goal.times:g}")
        rows.append([labels[goal.ours], *cells, spread(times), met])
    head = ["", "less CPU than", "thinking", "for", "times, wanted", "found", "met"]
    return table(head, rows)


def machine_list(figures: Figures, machine: Mapping[str, str]) -> str:
    """On what was measured, and how quiet it was."""
    times = Counter((run.case, run.work, run.agents) for run in figures.runs).values()
    repeats = " to ".join(f"{count}" for count in sorted({min(times), max(times)}))
    lines = [f"- {name}: {words}" for name, words in machine.items()]
    lines.append(f"- repeats: {repeats}")
    lines.append(f"- others' share of the CPU meanwhile: {figures.others_share():.0%}")
    labels = {case.name: case.label for case in CASES}
    lines += dict.fromkeys(
        f"- failed: {labels[run.case]}, {run.agents:,} agents: {run.error}"
        for run in failures(figures.runs)
    )
    return "\n".join(lines)
