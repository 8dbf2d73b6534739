"""At which layer two runs part: files, versions, personas, prompts, replies, reading, results.

Tables are compared by columns, a row group at a time. Rows that belong together are found by
session, round, agent, step and attempt; order of arrival, hosts and times make no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from agentsim.results.aligned import Mask, Pairs, align, differing, in_order
from agentsim.results.columns import to_numpy
from agentsim.results.compare_manifests import files_layer, told, versions_layer
from agentsim.results.compare_requests import (
    aligned_requests,
    difference_of_messages,
    place_of_request,
)
from agentsim.results.difference import Difference, Layer, of_values
from agentsim.results.directory import RunDirectory
from agentsim.results.manifest import read_manifest
from agentsim.results.parts import parts
from agentsim.results.pieces import Pieces
from agentsim.results.summary import run_end
from agentsim.results.workflow import table_names, table_path

_PROMPTS = ("messages", "format", "seed")
_REPLIES = ("text", "finish_reason", "error")
_READING = ("status", "value", "final")
_ACTION_KEY = ("session", "round", "agent")
_ACTIONS = ("group", "status", "value", "won", "payoff", "attempts")
_ANNOUNCEMENTS = ("group", "n", "target", "mean", "median", "winning_guess", "winners")


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two runs.

    Attributes:
        path: its directory.
        run_id: tells runs apart.
        state: finished, failed, interrupted or running.
        settled: rounds that are settled, over all sessions; None for a program of a user's.
        expected: rounds of the scenario, over all sessions; likewise.
        wall_s: how long it took; None when it did not say.
    """

    path: Path
    run_id: str
    state: str
    settled: int | None
    expected: int | None
    wall_s: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two runs have in common and what not.

    Attributes:
        left, right: the runs.
        layers: in the order in which one follows from the other.
        told: what differs and decides no result.
    """

    left: Side
    right: Side
    layers: tuple[Layer, ...]
    told: tuple[Difference, ...]

    @property
    def parting(self) -> Layer | None:
        """The first layer that differs; None when the runs are equal."""
        return next((layer for layer in self.layers if not layer.equal), None)

    @property
    def equal_so_far(self) -> bool:
        """Whether all that both have is equal: one may have settled fewer rounds."""
        return all(layer.differ == 0 for layer in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "equal": self.parting is None,
            "equal_so_far": self.equal_so_far,
            "part_at": self.parting and self.parting.name,
            "runs": [{**asdict(side), "path": str(side.path)} for side in (self.left, self.right)],
            "layers": [layer.to_dict() for layer in self.layers],
            "told": [asdict(difference) for difference in self.told],
        }


def compare(left: Path, right: Path) -> Comparison:
    """Compare two runs, also unfinished ones: their settled rounds.

    Raises:
        ResultsError: no run is at a path, or it cannot be read.
    """
    directories = RunDirectory.open(left), RunDirectory.open(right)
    manifests = read_manifest(left), read_manifest(right)
    layers = [
        files_layer(*manifests),
        versions_layer(*manifests),
        _personas(*directories),
        *_requests(*directories),
        _results(*directories),
    ]
    mine, its = (_side(*pair) for pair in zip(directories, manifests, strict=True))
    return Comparison(mine, its, tuple(layers), tuple(told(*manifests)))


_Place = Callable[[Pieces, int], tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Tables:
    """Two tables, row by row."""

    left: Pieces
    right: Pieces
    pairs: Pairs
    place: _Place

    def layer(self, name: str, columns: Sequence[str], *, alone: bool = True) -> Layer:
        """What differs in some columns.

        Args:
            alone: whether rows that only one run has are counted here.
        """
        masks = {column: differing(self.left, self.right, self.pairs, column) for column in columns}
        any_ = np.logical_or.reduce([*masks.values(), np.zeros(len(self.pairs), np.bool_)])
        pairs = self.pairs
        missing = [] if not alone else list(self._alone())
        return Layer(
            name,
            len(pairs) if len(self.left) or len(self.right) else None,
            int(np.count_nonzero(any_)),
            len(pairs.only_left) if alone else 0,
            len(pairs.only_right) if alone else 0,
            (*self._firsts(masks), *missing),
            {column: int(np.count_nonzero(mask)) for column, mask in masks.items() if mask.any()},
        )

    def _firsts(self, masks: Mapping[str, Mask]) -> Iterator[Difference]:
        firsts = {column: int(np.argmax(mask)) for column, mask in masks.items() if mask.any()}
        for column, pair in sorted(firsts.items(), key=lambda item: item[1]):
            mine, its = int(self.pairs.left[pair]), int(self.pairs.right[pair])
            place, where = self.place(self.left, mine)
            values = self.left.value(mine, column), self.right.value(its, column)
            if column == "messages":
                yield difference_of_messages(*values, place, **where)
            else:
                yield of_values(column, *values, place, **where)

    def _alone(self) -> Iterator[Difference]:
        for table, rows, words in (
            (self.left, self.pairs.only_left, ("there", "")),
            (self.right, self.pairs.only_right, ("", "there")),
        ):
            if rows.size:
                place, where = self.place(table, int(rows[0]))
                yield Difference("row", *words, place, where)


def _personas(*directories: RunDirectory) -> Layer:
    with ExitStack() as stack:
        left, right = (
            stack.enter_context(Pieces([directory.personas] if directory.personas.exists() else []))
            for directory in directories
        )
        keys = ("session", "agent")
        pairs = align(*([table.numbers(name) for name in keys] for table in (left, right)))
        columns = dict.fromkeys([*left.names, *right.names])
        # Of texts by a model, who wrote them and how often they were asked for is left out; but a
        # population may have an attribute of such a name.
        stage = ("writer", "attempts", "checks") if "profile" in columns else ()
        compared = [name for name in columns if name not in (*keys, *stage)]
        return _Tables(left, right, pairs, _place_of_person).layer("personas", compared)


def _requests(*directories: RunDirectory) -> Iterator[Layer]:
    with ExitStack() as stack:
        left, right, pairs = aligned_requests(stack, *directories)
        tables = _Tables(left, right, pairs, place_of_request)
        yield tables.layer("prompts", _PROMPTS)
        yield tables.layer("replies", _REPLIES, alone=False)
        yield tables.layer("reading", _READING, alone=False)


def _results(*directories: RunDirectory) -> Layer:
    layers = [*_actions(*directories), *_program_tables(*directories)]
    some = [layer for layer in layers if layer.compared is not None]
    counts: dict[str, int] = {}
    for layer in layers:
        counts |= {f"{layer.name}.{name}": n for name, n in (layer.counts or {}).items()}
    return Layer(
        "results",
        sum(layer.compared or 0 for layer in some) if some else None,
        sum(layer.differ for layer in layers),
        sum(layer.only_left for layer in layers),
        sum(layer.only_right for layer in layers),
        tuple(difference for layer in layers for difference in layer.first),
        counts,
    )


def _actions(*directories: RunDirectory) -> Iterator[Layer]:
    """Final actions, then what was announced."""
    with ExitStack() as stack:
        left, right = (stack.enter_context(Pieces(parts(d, "actions"))) for d in directories)
        keys = ([table.numbers(name) for name in _ACTION_KEY] for table in (left, right))
        tables = _Tables(left, right, align(*keys), _place_of_action)
        yield tables.layer("actions", _ACTIONS)
    with ExitStack() as stack:
        left, right = (stack.enter_context(Pieces(parts(d, "announcements"))) for d in directories)
        groups: dict[str | None, int] = {None: 0}
        keys = (_announcement_keys(table, groups) for table in (left, right))
        tables = _Tables(left, right, align(*keys), _place_of_round)
        yield tables.layer("announcements", _ANNOUNCEMENTS)


def _announcement_keys(table: Pieces, groups: dict[str | None, int]) -> list[NDArray[Any]]:
    codes = []
    for column in table.column("group"):
        names = pc.unique(column)
        known = [groups.setdefault(name, len(groups)) for name in names.to_pylist()]
        codes.append(np.array(known)[to_numpy(pc.index_in(column, value_set=names))])
    of_all = np.concatenate(codes) if codes else np.empty(0, np.int64)
    return [table.numbers("session"), table.numbers("round"), of_all]


def _program_tables(*directories: RunDirectory) -> Iterator[Layer]:
    """The tables that a program of a user's has recorded, row by row."""
    names = [table_names(directory) for directory in directories]
    for name in sorted({*names[0], *names[1]}):
        with ExitStack() as stack:
            left, right = (
                stack.enter_context(Pieces([table_path(d, name)] if name in known else []))
                for d, known in zip(directories, names, strict=True)
            )
            pairs = in_order(len(left), len(right))
            tables = _Tables(left, right, pairs, _place_in(name))
            yield tables.layer(name, list(dict.fromkeys([*left.names, *right.names])))


def _place_of_person(table: Pieces, row: int) -> tuple[str, dict[str, Any]]:
    where = {name: table.value(row, name) for name in ("session", "agent")}
    return f"session {where['session']}, agent {where['agent']}", where


def _place_of_action(table: Pieces, row: int) -> tuple[str, dict[str, Any]]:
    where = {name: table.value(row, name) for name in _ACTION_KEY}
    return f"session {where['session']}, round {where['round']}, agent {where['agent']}", where


def _place_of_round(table: Pieces, row: int) -> tuple[str, dict[str, Any]]:
    where = {name: table.value(row, name) for name in ("session", "round", "group")}
    group = f", group {where['group']}" if where["group"] is not None else ""
    return f"session {where['session']}, round {where['round']}{group}", where


def _place_in(name: str) -> _Place:
    return lambda table, row: (f"table {name}, row {row + 1}", {"table": name, "row": row + 1})


def _side(directory: RunDirectory, manifest: Mapping[str, Any]) -> Side:
    scenario = manifest.get("scenario") or {}
    state, end = run_end(directory)
    settled = expected = None
    if not scenario.get("workflow"):
        with Pieces(parts(directory, "announcements")) as table:
            sessions, rounds = (table.numbers(name) for name in ("session", "round"))
            settled = len(np.unique((sessions.astype(np.int64) << 32) | rounds))
        expected = scenario.get("rounds", 0) * scenario.get("sessions", 0)
    return Side(
        directory.path,
        str(manifest.get("run_id", "")),
        state,
        settled,
        expected,
        end.wall_s if end else None,
    )
