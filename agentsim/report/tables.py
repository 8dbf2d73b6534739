"""The report's numbers as CSV: one file a table, in the game's unit, empty where there is none."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from agentsim.replies import STATUSES
from agentsim.report.attributes import cell_means
from agentsim.report.counts import Counts
from agentsim.report.figures.drawn import Data
from agentsim.report.tau import Tau

_COUNTS = ["session", "round", "n", "valid", "missing"]
_MOMENTS = ["mean", "sd", "min", "q1", "median", "q3", "max"]
_ROUND = [*_COUNTS, *_MOMENTS, "target", "winning_guess", "winners"]
_GROUP = [*_COUNTS[:2], "group", *_COUNTS[2:], *_MOMENTS, "target", "winning_guess", "winners"]
_BOUNDS = ["mean_low", "mean_high", "target_low", "target_high"]
_OVER = ["round", "sessions", "mean_of_means", "sd_between_sessions", "low", "high"]
_CELL = ["attribute", "cell", "round", "n", "sessions", "mean", "sd_between_sessions"]


def tables(summary: Data, manifest: Data, counts: Counts, tau: Tau) -> dict[str, bytes]:
    """Contents of the CSV files by name, without the ending."""
    return {
        "rounds": _csv([*_ROUND, *_BOUNDS, *map(str, STATUSES)], _rounds(summary)),
        "over_sessions": _csv([*_OVER, "people_mean", "people_median"], _over_sessions(summary)),
        "groups": _csv(
            _GROUP, ([row[key] for key in _GROUP] for row in summary.get("groups") or [])
        ),
        "histogram": _csv(["round", "bin_low", "bin_high", "count", "share"], _histogram(counts)),
        "statuses": _csv(["round", "group", "status", "count", "share"], _statuses(counts)),
        "attempts": _csv(["session", "round", "attempt", "status", "count"], _attempts(summary)),
        "first_attempts": _csv(
            ["session", "round", "first_n", "first_mean", "final_n", "final_mean"],
            _first(summary),
        ),
        "reasons": _csv(
            ["status", "reason", "count"],
            ([row["status"], row["reason"], row["count"]] for row in summary["reasons"]),
        ),
        "means_by_attribute": _csv([*_CELL, "low", "high"], _attributes(counts)),
        "tau": _csv(
            ["tau", "low", "high", "missing_low", "missing_high", "words"],
            [[tau.value, tau.low, tau.high, tau.missing_low, tau.missing_high, tau.words]],
        ),
        "equilibrium": _csv(
            ["guess"],
            ([guess] for guess in (manifest.get("equilibrium") or {}).get("guesses") or []),
        ),
    }


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode()


def _rounds(summary: Data) -> Iterable[list[Any]]:
    for row in summary["rounds"]:
        bounds = row["bounds"] or {}
        yield (
            [row[key] for key in _ROUND]
            + [bounds.get(key) for key in _BOUNDS]
            + [row["statuses"].get(str(status), 0) for status in STATUSES]
        )


def _over_sessions(summary: Data) -> Iterable[list[Any]]:
    people = summary["people"] or {}
    means, medians = (dict(enumerate(people.get(key) or [], 1)) for key in ("means", "medians"))
    for row in summary["over_sessions"]:
        published = [means.get(row["round"]), medians.get(row["round"])]
        yield [row[key] for key in _OVER] + published


def _histogram(counts: Counts) -> Iterable[list[Any]]:
    edges = counts.edges.tolist()
    for round, row in zip(counts.rounds, counts.histogram.tolist(), strict=True):
        n = sum(row)
        for low, high, count in zip(edges, edges[1:], row, strict=False):
            yield [round, low, high, count, count / n if n else None]


def _statuses(counts: Counts) -> Iterable[list[Any]]:
    for round, groups in zip(counts.rounds, counts.statuses.tolist(), strict=True):
        for group, row in zip(counts.groups, groups, strict=True):
            n = sum(row)
            for status, count in zip(STATUSES, row, strict=True):
                yield [round, group, status, count, count / n if n else None]


def _attempts(summary: Data) -> Iterable[list[Any]]:
    for row in summary["rounds"]:
        for entry in row["statuses_by_attempt"]:
            for status, count in entry["statuses"].items():
                yield [row["session"], row["round"], entry["attempt"], status, count]


def _first(summary: Data) -> Iterable[list[Any]]:
    for row in summary["rounds"]:
        first, final = row["first_attempt"], row["final"]
        yield [row["session"], row["round"], first["n"], first["mean"], final["n"], final["mean"]]


def _attributes(counts: Counts) -> Iterable[list[Any]]:
    for each in counts.attributes:
        for mean in cell_means(each, counts.rounds):
            yield [
                mean.attribute,
                mean.cell,
                mean.round,
                mean.n,
                mean.sessions,
                mean.mean,
                mean.sd,
                mean.low,
                mean.high,
            ]
