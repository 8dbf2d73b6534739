"""What reading a run's replies again changes, as text of 80 columns and as JSON."""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console

from agentsim.report.words import NOTHING, Number, count, printable, table
from agentsim.results.reread import Chain, Change, Reread, RoundChange
from agentsim.version import __version__

_WIDTH = 80
_EXAMPLES = 3
_CHARACTERS = 400
_BODY = " " * 6


def plain(result: Reread, number: Number) -> str:
    """All of it as text, replies shortened, with a few examples of each kind of change.

    Raises:
        ResultsError: the replies cannot be read.
    """
    return "\n".join(_lines(result, number)) + "\n"


def as_json(result: Reread) -> Iterator[str]:
    """All of it as JSON, in pieces, with every change.

    Raises:
        ResultsError: the replies cannot be read.
    """
    head: dict[str, Any] = {
        "run": str(result.path),
        "recorded_by": result.recorded_by,
        "read_by": __version__,
        "replies": result.replies,
        "failed": result.failed,
        "changed": result.changed,
        "counts": [
            {"before": before, "after": after, "count": number}
            for (before, after), number in result.counts.most_common()
        ],
        "chains": {str(chain): n for chain, n in result.chains.items() if chain},
        "rounds": [asdict(row) for row in result.rounds],
    }
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "changes": ['
    for index, change in enumerate(result.changes()):
        yield (", " if index else "") + json.dumps(asdict(change), ensure_ascii=False)
    yield "]}\n"


def _lines(result: Reread, number: Number) -> Iterator[str]:
    version = "" if result.recorded_by == __version__ else f", recorded by {result.recorded_by}"
    yield f"{result.path}: {count(result.replies)} replies, read again by {__version__}{version}"
    if result.failed:
        yield f"{count(result.failed)} requests had no reply at all"
    if not result.replies:
        yield "There is nothing to read: no language model has answered."
        return
    yield ""
    if not result.changed:
        yield "Every reply is read as it was."
        return
    yield f"{count(result.changed)} replies are read otherwise"
    yield ""
    kinds = result.counts.most_common()
    cells = {
        "recorded": [before for (before, _), _ in kinds],
        "today": [after for (_, after), _ in kinds],
        "replies": [count(n) for _, n in kinds],
    }
    yield from _table(cells)
    yield ""
    yield from _chains(result)
    for change in result.examples(_EXAMPLES):
        yield from _change(change, number)
    yield ""
    yield from _table(_by_round(result.rounds, number))


def _chains(result: Reread) -> Iterator[str]:
    chains = {chain: n for chain, n in result.chains.items() if chain is not Chain.SAME}
    if not chains:
        return
    for chain, n in chains.items():
        yield f"  {count(n)} of them: {chain}"
    yield "  What would have been asked and answered then needs the model: it is not known."
    yield ""


def _change(change: Change, number: Number) -> Iterator[str]:
    before, after = (
        f"{status} {number(value)}" if value is not None else status
        for status, value in (
            (change.before, change.value_before),
            (change.after, change.value_after),
        )
    )
    yield from _wrapped(f"{change.place}: {before} -> {after} ({change.reason})", "  ")
    text = change.text if len(change.text) <= _CHARACTERS else f"{change.text[:_CHARACTERS]}…"
    yield from _wrapped(printable(text) or "(no text)", f"{_BODY}| ")
    if change.chain:
        yield f"{_BODY}{change.chain}"


def _by_round(rows: list[RoundChange], number: Number) -> dict[str, list[str]]:
    """By round; several sessions as the mean of their means."""
    rounds = sorted({row.round for row in rows})
    of = {round: [row for row in rows if row.round == round] for round in rounds}

    def mean(values: list[float | None]) -> str:
        some = [value for value in values if value is not None]
        return number(sum(some) / len(some)) if some else NOTHING

    return {
        "round": [str(round) for round in rounds],
        "valid": [count(sum(row.valid_before for row in of[r])) for r in rounds],
        "valid today": [count(sum(row.valid_after for row in of[r])) for r in rounds],
        "mean": [mean([row.mean_before for row in of[r]]) for r in rounds],
        "mean today": [mean([row.mean_after for row in of[r]]) for r in rounds],
    }


def _table(cells: dict[str, list[str]]) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=_WIDTH, color_system=None, force_terminal=False).print(table(cells))
    return [f"  {line.rstrip()}" for line in out.getvalue().splitlines()]


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
