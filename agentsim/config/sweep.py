"""The `sweep:` part of a scenario: one file, many runs.

A map is a grid: every combination of its lists, the last key varying fastest. A list is cells one
by one. Keys are dotted, as `--set` takes them, and may name any part of the scenario.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from agentsim.config import overrides as flags
from agentsim.config.files import shown
from agentsim.config.shape import flow
from agentsim.config.tree import (
    Entry,
    Mapping,
    Node,
    Place,
    Scalar,
    Sequence,
    given,
    key_place,
    place,
    plain,
    put,
    walk,
    without,
)
from agentsim.config.words import found
from agentsim.errors import Finding

KEY = "sweep"
MOST_CELLS = 1000
"""More would be a study of its own, and nobody reads its table."""
_LABEL = 60


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that a cell sets.

    Attributes:
        key: dotted.
        value: plain data.
        written: as the author wrote it.
    """

    key: str
    value: Any
    written: str

    @property
    def words(self) -> str:
        """As people are told of it: `model.temperature=0.05`."""
        text = self.written if len(self.written) <= _LABEL else f"{self.written[: _LABEL - 1]}…"
        return f"{self.key}={text}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of a sweep.

    Attributes:
        number: from 1.
        settings: in the order in which they were written.
        node: the scenario's tree with them set, without its sweep.
        where: in the sweep.
    """

    number: int
    settings: tuple[Setting, ...]
    node: Node
    where: Place

    @property
    def words(self) -> str:
        """`prompt=direct, model.temperature=0.05`; `as it is` for a cell that sets nothing."""
        return in_words(self.settings)


def in_words(settings: Iterable[Setting]) -> str:
    """What a cell sets, for people."""
    return ", ".join(setting.words for setting in settings) or "as it is"


def has_sweep(root: Node) -> bool:
    """Whether a scenario asks for one: null and an empty map or list do not."""
    sweep = given(root, KEY)
    if isinstance(sweep, Mapping):
        return bool(sweep.entries)
    return bool(sweep.items) if isinstance(sweep, Sequence) else sweep is not None


def lines(root: Node) -> set[tuple[str, int]]:
    """File and line (from 1; 0 in a flag) of everything in the sweep."""
    places = [node.place for _, node in walk(given(root, KEY) or root)]
    places += [
        entry.key
        for _, node in walk(given(root, KEY) or root)
        if isinstance(node, Mapping)
        for entry in node.entries.values()
    ]
    related = (item.related("") for item in places)
    return {(item.file, item.line) for item in related}


def expand(
    root: Node, overrides: Iterable[flags.Override] = ()
) -> tuple[list[Cell], list[Finding]]:
    """The cells of a scenario's sweep, and what is wrong with it; no cells if it is none.

    Args:
        root: the scenario's tree, with what the command line changed.
        overrides: what it changed.
    """
    sweep = given(root, KEY)
    findings: list[Finding] = []
    if isinstance(sweep, Mapping):
        chosen = _grid(root, sweep, findings)
    elif isinstance(sweep, Sequence):
        chosen = _listed(root, sweep, findings)
    else:
        message = f"sweep must be a map of lists, or a list of maps, found {found(root, (KEY,))}"
        example = "for example sweep: {prompt: [direct, step_by_step]}"
        return [], [place(root, (KEY,)).finding("wrong-type", message, example)]
    if findings:
        return [], findings
    findings += _clashes(chosen, overrides)
    base = without(root, (KEY,))
    cells = []
    for number, (where, entries) in enumerate(chosen, 1):
        node, wrong = _set(base, entries)
        findings += wrong
        settings = tuple(Setting(key, plain(e.value), _written(e.value)) for key, e in entries)
        cells.append(Cell(number, settings, node, where))
    findings += _equal(cells)
    return cells, list(dict.fromkeys(findings))


_Entries = tuple[tuple[str, Entry], ...]


def _grid(root: Node, sweep: Mapping, findings: list[Finding]) -> list[tuple[Place, _Entries]]:
    for key, entry in sweep.entries.items():
        where = place(root, (KEY, key))
        findings += _bad_key(key, entry.key)
        if not isinstance(entry.value, Sequence):
            message = f"sweep: {shown(key, 60)} must be a list of values, found "
            message += found(root, (KEY, key))
            example = f"for example {shown(key, 60)}: [{_example(entry.value)}]"
            findings.append(where.finding("wrong-type", message, example.replace("`", "")))
        elif not entry.value.items:
            message = f"sweep: {shown(key, 60)} must not be empty"
            findings.append(where.finding("out-of-range", message, "at least one value"))
    if findings:
        return []
    lists = [
        [(key, Entry(entry.key, item)) for item in entry.value.items]
        for key, entry in sweep.entries.items()
        if isinstance(entry.value, Sequence)
    ]
    count = math.prod(map(len, lists))
    findings += _too_many(root, count)
    return [] if findings else [(c[0][1].key, c) for c in itertools.product(*lists)]


def _listed(root: Node, sweep: Sequence, findings: list[Finding]) -> list[tuple[Place, _Entries]]:
    chosen = []
    findings += _too_many(root, len(sweep.items))
    for index, item in enumerate(sweep.items):
        if isinstance(item, Mapping):
            for key, entry in item.entries.items():
                findings += _bad_key(key, entry.key)
            chosen.append((item.place, tuple(item.entries.items())))
        else:
            message = f"sweep: cell {index + 1} must be a map, found {found(root, (KEY, index))}"
            example = "a map of what it sets, for example {prompt: direct, seed: 1}"
            findings.append(place(root, (KEY, index)).finding("wrong-type", message, example))
    return chosen


def _bad_key(key: str, where: Place) -> Iterator[Finding]:
    if not all(part.strip() for part in key.split(".")):
        yield where.finding("bad-value", f"{shown(key, 60)} is not a dotted key")
    elif key.split(".")[0] == KEY:
        yield where.finding("bad-value", "a sweep cannot set a sweep")


def _too_many(root: Node, count: int) -> list[Finding]:
    if count <= MOST_CELLS:
        return []
    where = key_place(root, (KEY,)) or place(root, (KEY,))
    message = f"sweep: makes {count:,} runs, and {MOST_CELLS:,} are the most"
    return [where.finding("out-of-range", message, "fewer values, or several scenarios")]


def _clashes(
    chosen: list[tuple[Place, _Entries]], overrides: Iterable[flags.Override]
) -> Iterator[Finding]:
    """Values of the command line that a cell would replace."""
    swept = {key: entry.key for _, entries in chosen for key, entry in reversed(entries)}
    for override in overrides:
        name, _, flag = override
        for key, where in swept.items():
            if name == key or name.startswith(f"{key}."):
                yield flags.key_place(override).finding(
                    "contradiction",
                    f"{flag} sets {shown(name, 60)}, and so does the sweep",
                    hint=f"leave one of them out; `--set '{KEY}={{}}'` leaves out the sweep",
                    related=(where.related("it is swept here"),),
                )


def _set(node: Node, entries: _Entries) -> tuple[Node, list[Finding]]:
    """The tree with a cell's values; what is within another of its values is set after it."""
    findings = []
    for key, entry in sorted(entries, key=lambda item: item[0].count(".")):
        changed = put(node, _steps(key, entry.key), entry.value)
        if changed is None:
            problem = f"sweep: {shown(key, 60)} goes into a list that has no such position"
            findings.append(entry.key.finding("bad-value", problem))
        else:
            node = changed
    return node, findings


def _steps(key: str, where: Place) -> tuple[tuple[str, Place], ...]:
    """The names of a dotted key, each with its place; a quoted key is one place."""
    names = key.split(".")
    if where.length != len(key):
        return tuple((name.strip(), where) for name in names)
    starts = itertools.accumulate((len(name) + 1 for name in names), initial=where.column)
    return tuple(
        (name.strip(), Place(where.document, where.line, start, len(name)))
        for name, start in zip(names, starts, strict=False)
    )


def _equal(cells: list[Cell]) -> Iterator[Finding]:
    """Cells that would play the same."""
    first: dict[str, Cell] = {}
    for cell in cells:
        values = repr(sorted((setting.key, repr(setting.value)) for setting in cell.settings))
        earlier = first.setdefault(values, cell)
        if earlier is not cell:
            yield cell.where.finding(
                "bad-value",
                f"sweep: cell {cell.number} is the same as cell {earlier.number}: {cell.words}",
                hint="independent repetitions are `sessions`, or cells with other seeds",
            )


def _written(node: Node) -> str:
    """A value as its author wrote it, on one line."""
    if isinstance(node, Scalar):
        return " ".join(node.written.split()) or flow(node.value)
    return flow(plain(node))


def _example(node: Node) -> str:
    return _written(node) if isinstance(node, Scalar) and node.written else "…"
