"""The directory of a sweep: names, states, the table."""

from __future__ import annotations

import csv
import io
import json
import multiprocessing as mp
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentsim.errors import ResultsError
from agentsim.results import RunDirectory
from agentsim.results.sweep import (
    Asked,
    Cell,
    Sweep,
    SweepDirectory,
    directory_name,
    is_sweep,
    make_sweep,
)
from agentsim.results.sweep_table import as_csv, table, write_table

SCENARIO = {"agents": 10, "sessions": 2, "rounds": 3}


def sweep(*cells: dict[str, Any]) -> Sweep:
    made = [
        Cell(
            **{
                "number": number,
                "name": f"{number:04d}",
                "words": f"seed={number}",
                "set": {"seed": number},
                "scenario": SCENARIO,
            }
            | fields
        )
        for number, fields in enumerate(cells, 1)
    ]
    return make_sweep("s", made, Asked(folder="/", file="/s.yaml"), {"/s.yaml": "name: s\n"})


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "0001"),
        ({"prompt": "direct", "model.temperature": "0.05"}, "0001-prompt-direct+temperature-0.05"),
        ({"a.n": "1", "b.n": "2"}, "0001-a.n-1+b.n-2"),
        ({"model": "{backend: level_k}"}, "0001-model-backend-level_k"),
        ({"target": "../../etc/passwd"}, "0001-target-..-..-etc-passwd"),
        ({"name": "Ünï/\n\x00"}, "0001-name-n"),
        ({"name": "//"}, "0001-name-x"),
        ({"a": "x" * 99}, "0001-a-" + "x" * 54),
    ],
)
def test_names_are_short_and_safe(settings: dict[str, str], name: str) -> None:
    assert directory_name(1, settings) == name
    assert "=" not in name
    assert "/" not in name


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    directory = SweepDirectory(tmp_path / "s")
    written = sweep({"state": "finished", "runs": ("cells/0001",)}, {"state": "waiting"})
    directory.create(written)
    assert is_sweep(directory.path)
    assert not is_sweep(tmp_path)
    assert directory.read() == written
    assert written.keys == ("seed",)
    with pytest.raises(ResultsError, match="exists already"):
        directory.create(written)


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (("finished", "finished"), "finished"),
        (("finished", "failed"), "failed"),
        (("failed", "waiting"), "interrupted"),
        (("finished", "interrupted"), "interrupted"),
        (("running", "waiting"), "running"),
    ],
)
def test_the_state_of_the_whole(states: tuple[str, ...], state: str) -> None:
    assert sweep(*({"state": item} for item in states)).state == state


def test_a_cell_that_nobody_runs_any_more_is_interrupted(tmp_path: Path) -> None:
    directory = SweepDirectory(tmp_path / "s")
    directory.create(sweep({"state": "running", "runs": ("cells/0001",)}))
    assert directory.read().cells[0].state == "interrupted"
    with directory.held():
        assert directory.is_being_written()
        assert directory.read().cells[0].state == "running"
        assert directory.read(held=True).cells[0].state == "interrupted"
    assert not directory.is_being_written()


def test_two_processes_exclude_each_other(tmp_path: Path) -> None:
    directory = SweepDirectory(tmp_path / "s")
    directory.create(sweep({}))
    context = mp.get_context("fork")
    with directory.held():
        child = context.Process(target=_hold, args=(directory,))
        child.start()
        child.join(30)
        assert child.exitcode == 2


def _hold(directory: SweepDirectory) -> None:
    try:
        with directory.held():
            raise SystemExit(0)
    except ResultsError:
        raise SystemExit(2) from None


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"format": 1}'])
def test_what_is_no_sweep_is_said_so(tmp_path: Path, text: str) -> None:
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(ResultsError, match=r"sweep\.json"):
        SweepDirectory(tmp_path).read()


def test_another_version_is_refused(tmp_path: Path) -> None:
    directory = SweepDirectory(tmp_path / "s")
    directory.create(msgspec.structs.replace(sweep({}), format=2))
    with pytest.raises(ResultsError, match="another version"):
        directory.read()


def summary(mean: float) -> dict[str, Any]:
    """What a run's summary.json has that a table needs."""
    return {
        "run": {"rounds_settled": 4, "wall_s": 1.5},
        "actions": {"settled": 40, "valid": 39, "valid_share": 0.975},
        "over_sessions": [
            {"round": n, "mean_of_means": mean / n, "sd_between_sessions": 0.5, "sessions": 2}
            for n in (1, 2)
        ],
        "tokens": {"prompt": 7, "completion": 5, "total": 12},
    }


def test_the_table_has_a_row_a_cell(tmp_path: Path) -> None:
    directory = SweepDirectory(tmp_path / "s")
    cells = sweep(
        {"state": "finished", "runs": ("cells/0001", "cells/0001.2"), "set": {"seed": 1, "x": [1]}},
        {"state": "failed", "reason": "no model", "set": {"flag": True}},
    )
    directory.create(cells)
    run = directory.path / "cells" / "0001.2"
    run.mkdir()
    (run / "summary.json").write_text(json.dumps(summary(30.0)))
    contents = write_table(directory, cells)
    assert json.loads(directory.summary.read_text()) == contents == table(directory, cells)
    first, second = contents["cells"]
    assert (first["first"]["mean"], first["last"]["mean"], first["last"]["sd"]) == (30, 15, 0.5)
    assert (first["valid"], first["tokens"], first["wall_s"]) == (39, 12, 1.5)
    assert (second["first"], second["tokens"], second["run"]) == (None, None, None)
    assert contents["sweep"]["states"] == {"failed": 1, "finished": 1}
    rows = list(csv.DictReader(io.StringIO(as_csv(contents).decode())))
    assert directory.table.read_bytes() == as_csv(contents)
    assert [row["seed"] for row in rows] == ["1", ""]
    assert (rows[0]["x"], rows[1]["flag"], rows[1]["reason"]) == ("[1]", "true", "no model")
    assert (rows[0]["mean_last"], rows[0]["run"]) == ("15.0", "cells/0001.2")


def test_a_sweep_is_no_run_and_says_where_its_runs_are(tmp_path: Path) -> None:
    directory = SweepDirectory(tmp_path / "s")
    directory.create(sweep({}))
    with pytest.raises(ResultsError, match=r"a sweep is here.*one of .*cells"):
        RunDirectory.open(directory.path)
