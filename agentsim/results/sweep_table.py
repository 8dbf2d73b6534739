"""The table of a sweep: a row a cell, from the summaries of its runs.

    sweep   id, name, state, created, keys (dotted), cells (how many) and how many of each state
    cells   number, set (values by dotted key), words, state, reason, run (its directory within the
            sweep's; null before it began), agents, sessions, rounds, rounds_settled, means (one a
            round: round, mean over sessions, sd between sessions, sessions), first and last (of
            means), settled, valid, valid_share (of actions), tokens (of prompts and replies),
            wall_s

A number that does not exist is null; a program of the user's has no rounds.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentsim.results.storage import read_json, write_atomic, write_json
from agentsim.results.sweep import Cell, Sweep, SweepDirectory


def table(directory: SweepDirectory, sweep: Sweep) -> dict[str, Any]:
    """The sweep's table, as the module says.

    Raises:
        ResultsError: a summary is damaged.
    """
    states = Counter(cell.state for cell in sweep.cells)
    return {
        "sweep": {
            "id": sweep.id,
            "name": sweep.name,
            "state": sweep.state,
            "created": sweep.created,
            "keys": list(sweep.keys),
            "cells": len(sweep.cells),
            "states": dict(sorted(states.items())),
        },
        "cells": [row(directory, cell) for cell in sweep.cells],
    }


def row(directory: SweepDirectory, cell: Cell) -> dict[str, Any]:
    """One cell's row."""
    summary = _summary(directory.path / cell.runs[-1]) if cell.runs else {}
    means = [
        {
            "round": item["round"],
            "mean": item["mean_of_means"],
            "sd": item["sd_between_sessions"],
            "sessions": item["sessions"],
        }
        for item in summary.get("over_sessions", [])
    ]
    run, actions = summary.get("run") or {}, summary.get("actions") or {}
    return {
        "number": cell.number,
        "set": cell.set,
        "words": cell.words,
        "state": cell.state,
        "reason": cell.reason,
        "run": cell.runs[-1] if cell.runs else None,
        **{key: cell.scenario.get(key) for key in ("agents", "sessions", "rounds")},
        "rounds_settled": run.get("rounds_settled"),
        "means": means,
        "first": means[0] if means else None,
        "last": means[-1] if means else None,
        "settled": actions.get("settled"),
        "valid": actions.get("valid"),
        "valid_share": actions.get("valid_share"),
        "tokens": (summary.get("tokens") or {}).get("total"),
        "wall_s": run.get("wall_s"),
    }


def write_table(directory: SweepDirectory, sweep: Sweep) -> dict[str, Any]:
    """Write summary.json and sweep.csv; returns what is in summary.json.

    Raises:
        ResultsError: something cannot be read or written.
    """
    contents = table(directory, sweep)
    write_json(directory.summary, contents)
    write_atomic(directory.table, as_csv(contents))
    return contents


def as_csv(contents: Mapping[str, Any]) -> bytes:
    """The table as CSV: a column for each key that is set, then the numbers."""
    keys = contents["sweep"]["keys"]
    out = io.StringIO()
    rows = [_flat(row, keys) for row in contents["cells"]]
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def _flat(row: Mapping[str, Any], keys: list[str]) -> dict[str, Any]:
    first, last = row["first"] or {}, row["last"] or {}
    numbers = {
        key: row[key]
        for key in ("agents", "sessions", "rounds", "settled", "valid", "valid_share", "tokens")
        if key not in keys
    }
    return {
        "cell": row["number"],
        **{key: _cell(row["set"].get(key)) for key in keys},
        "state": row["state"],
        "reason": row["reason"],
        **numbers,
        "mean_first": first.get("mean"),
        "sd_first": first.get("sd"),
        "last_round": last.get("round"),
        "mean_last": last.get("mean"),
        "sd_last": last.get("sd"),
        "wall_s": row["wall_s"],
        "run": row["run"],
    }


def _cell(value: Any) -> Any:
    """A value in a table: a list or a map as JSON."""
    return json.dumps(value) if isinstance(value, bool | list | dict) else value


def _summary(run: Path) -> dict[str, Any]:
    path = run / "summary.json"
    return read_json(path) if path.exists() else {}
