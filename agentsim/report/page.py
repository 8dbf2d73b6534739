"""report.html: one file without scripts that opens offline and escapes all that it shows."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from agentsim.report import caution, repeat, rounds
from agentsim.report.attributes import cell_means
from agentsim.report.counts import Counts
from agentsim.report.examples import Example
from agentsim.report.figures.drawn import Data, Figure
from agentsim.report.figures.inline import colours_css, inline
from agentsim.report.groups import group_means, group_names
from agentsim.report.tau import Tau
from agentsim.report.words import Number, count, duration, printable, visible

_HEAD_ROWS, _TAIL_ROWS = 20, 5
_CELL_ROWS = 200
_MOST_GROUPS = 20

Columns = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Contents:
    """What the page shows.

    Attributes:
        summary, manifest: contents of the run's files.
        counts: of its actions.
        tau: fitted, or why not.
        examples: raw replies.
        figures: drawn.
    """

    summary: Data
    manifest: Data
    counts: Counts
    tau: Tau
    examples: Sequence[Example]
    figures: Sequence[Figure]


@dataclass(frozen=True, slots=True)
class Table:
    """A table for the template.

    Attributes:
        caption: what it shows.
        columns: cells by title; the first column heads the rows.
        words: titles of columns that hold words, which stand to the left.
    """

    caption: str
    columns: Columns
    words: tuple[str, ...] = ()


def page(contents: Contents) -> str:
    """The page as HTML."""
    return filled("page.html.j2", contents.figures, _variables(contents))


def filled(name: str, figures: Sequence[Figure], variables: dict[str, Any]) -> str:
    """A template of this package with the common style, table and figure macros.

    Args:
        name: of the template.
        figures: that it may show, by name.
        variables: what it shows.
    """
    import jinja2
    from markupsafe import Markup

    folder = resources.files("agentsim.report")
    css = folder.joinpath("page.css").read_text("utf-8") + colours_css()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    texts = {each: folder.joinpath(each).read_text("utf-8") for each in (name, "macros.html.j2")}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(texts),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Nothing that steers (escape sequences, right-to-left overrides) reaches the page.
        finalize=lambda value: (
            visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
        ),
    )
    environment.globals |= {
        "zip": zip,
        "count": count,
        "titles": lambda table: list(table.columns),
        # Markup: our own style sheet, and figures whose texts were escaped when they were made.
        "css": Markup(css),
        "style_hash": digest,
        "figures": {
            figure.name: {
                "svg": Markup(inline(figure.files["svg"], figure.name, figure.title)),
                "title": figure.title,
                "caption": figure.caption,
            }
            for figure in figures
        },
    }
    return environment.get_template(name).render(**variables)


def _variables(contents: Contents) -> dict[str, Any]:
    summary, manifest = contents.summary, contents.manifest
    number = Number.of(manifest.get("rule"))
    scenario = manifest.get("scenario") or {}
    return {
        "name": printable(summary["run"]["name"] or "run"),
        "description": scenario.get("description") or "",
        "state": summary["run"]["state"],
        "progress": _progress(summary["run"]),
        "reason": summary["run"]["reason"],
        "valid": _tied(caution.valid(summary)),
        "missing": caution.missing(summary),
        "warnings": [_tied(warning) for warning in caution.warnings(summary, manifest)],
        "rounds": _rounds(summary, number),
        "notes": list(rounds.notes(summary, manifest)) if summary["rounds"] else [],
        "tau": contents.tau.words,
        "groups": _groups(summary, number),
        "cells": _cells(contents.counts, number),
        "persona_unseen": bool(contents.counts.attributes) and not caution.persona_shown(manifest),
        "replies": list(_replies(summary, number)),
        "examples": [(each, number(each.value)) for each in contents.examples],
        "personas": _personas(summary, manifest),
        "cost": list(_cost(summary)),
        "command": repeat.command(manifest).split(" "),
        "facts": repeat.facts(manifest),
        "hashes": Table("files that were read", repeat.hashes(manifest), ("file", "SHA-256")),
        "limits": list(caution.limits_of_the_run(summary, manifest)),
    }


def _tied(words: str) -> str:
    """As HTML, without a line break before a percent sign."""
    from markupsafe import Markup, escape

    return Markup(escape(words).replace(" %", Markup("&nbsp;%")))


def _progress(run: Data) -> str:
    words = []
    if run["wall_s"] is not None:
        words.append(f"{'in' if run['state'] == 'finished' else 'after'} {duration(run['wall_s'])}")
    if run["rounds_settled"] != run["rounds_expected"]:
        settled, expected = count(run["rounds_settled"]), count(run["rounds_expected"])
        words.append(f"with {settled} of {expected} rounds settled")
    return ", ".join(words)


def _rounds(summary: Data, number: Number) -> Table | None:
    if not summary["rounds"]:
        return None
    return Table("by round", _shortened(rounds.columns(summary, number)))


def _replies(summary: Data, number: Number) -> Iterator[Table]:
    """Statuses by attempt, why replies were not valid, what asking again changed."""
    if summary["tokens"] is None:
        return
    entries = [(entry["attempt"], entry["statuses"]) for entry in summary["attempts"]["by_attempt"]]
    names = dict.fromkeys(name for _, statuses in entries for name in statuses)
    yield Table(
        "how replies were read, by attempt",
        {
            "attempt": [str(attempt) for attempt, _ in entries],
            "replies": [count(sum(statuses.values())) for _, statuses in entries],
            **{name: [count(row.get(name, 0)) for _, row in entries] for name in names},
        },
    )
    if reasons := summary["reasons"]:
        yield Table(
            "why replies were not valid",
            {
                "status": [row["status"] for row in reasons],
                "reason": [printable(row["reason"]) for row in reasons],
                "replies": [count(row["count"]) for row in reasons],
            },
            ("status", "reason"),
        )
    if len(entries) > 1:
        yield Table(
            "first attempts alone, beside the final actions",
            _shortened(rounds.first_and_final(summary, number)),
        )


def _cells(counts: Counts, number: Number) -> Table | None:
    """Means by attribute in the first round and the last."""
    ends = {counts.rounds[0], counts.rounds[-1]} if counts.rounds else set()
    means = [
        mean
        for each in counts.attributes
        for mean in cell_means(each, counts.rounds)
        if mean.round in ends
    ][:_CELL_ROWS]
    if not means:
        return None
    columns: Columns = {
        "attribute": [mean.attribute for mean in means],
        "value": [mean.cell for mean in means],
        "round": [str(mean.round) for mean in means],
        "valid": [count(mean.n) for mean in means],
        "mean": [number(mean.mean) for mean in means],
    }
    if len(counts.sessions) > 1:
        columns["sessions"] = [count(mean.sessions) for mean in means]
        columns["interval"] = [number.span(mean.low, mean.high) for mean in means]
    return Table("means by attribute", columns, ("attribute", "value"))


def _groups(summary: Data, number: Number) -> Table | None:
    means = group_means(summary, group_names(summary)[:_MOST_GROUPS])[:_CELL_ROWS]
    if not means:
        return None
    columns: Columns = {
        "group": [printable(mean.group) for mean in means],
        "round": [str(mean.round) for mean in means],
        "agents": [count(mean.n) for mean in means],
        "valid": [count(mean.valid) for mean in means],
        "mean": [number(mean.mean) for mean in means],
        "target": [number(mean.target) for mean in means],
    }
    if not rounds.is_one_session(summary):
        columns["interval"] = [number.span(mean.low, mean.high) for mean in means]
    return Table("means by group", columns, ("group",))


def _personas(summary: Data, manifest: Data) -> dict[str, str]:
    """Counts of the stage that wrote personas, where there was one."""
    stage = summary.get("personas") or manifest.get("personas") or {}
    if not isinstance(stage, dict):
        return {}
    return {
        str(name).replace("_", " "): count(value) if isinstance(value, int) else str(value)
        for name, value in stage.items()
        if isinstance(value, int | float | str) and not isinstance(value, bool)
    }


def _cost(summary: Data) -> Iterator[str]:
    run, tokens = summary["run"], summary["tokens"]
    if run["wall_s"] is not None:
        cpu = f", {duration(run['cpu_s'])} of CPU" if run.get("cpu_s") is not None else ""
        yield f"{duration(run['wall_s'])} of wall time{cpu}"
    if tokens is not None:
        rate = summary["tokens_per_s"]
        prompt, replies = count(tokens["prompt"]), count(tokens["completion"])
        per_s = f", {rate:,.0f} a second" if rate is not None else ""
        yield f"tokens: {prompt} in prompts, {replies} in replies{per_s}"


def _shortened(columns: Columns) -> Columns:
    """Without the middle of very many rows."""
    rows = len(next(iter(columns.values())))
    if rows <= _HEAD_ROWS + _TAIL_ROWS + 1:
        return columns
    first, *_ = columns
    return {
        title: [*cells[:_HEAD_ROWS], "…" if title == first else "", *cells[-_TAIL_ROWS:]]
        for title, cells in columns.items()
    }
