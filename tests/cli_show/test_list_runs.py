"""`agentsim runs`: every directory of a folder in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import MadeRun, one_session, three_sessions, with_groups

from agentsim.errors import UserError
from agentsim.report.listing import as_data, list_runs, listing
from agentsim.results import RunDirectory, RunEnd, update_manifest
from agentsim.results.sweep import Asked, Cell, SweepDirectory, make_sweep


def started(run: Path, when: str) -> Path:
    update_manifest(RunDirectory(run), created=when)
    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    started(one_session(folder / "old"), "2026-01-01T00:00:00+00:00")
    started(three_sessions(folder / "new"), "2026-03-01T00:00:00+00:00")
    failed: Any = {"values": {(1, 1): [1.0, 3.0]}, "end": RunEnd("failed", reason="no disk")}
    started(MadeRun(folder / "failed", **failed).write(), "2026-02-01T00:00:00+00:00")
    killed = MadeRun(folder / "killed", {}, end=None).write()
    started(killed, "2026-02-02T00:00:00+00:00")
    (folder / "notes").mkdir()
    (one_session(folder / "broken") / "manifest.json").write_text("{")
    (folder / ".hidden").mkdir()
    (folder / "a file").write_text("")
    return folder


def test_the_newest_first_and_what_cannot_be_read_last(folder: Path) -> None:
    found = list_runs(folder)
    assert [(run.path.name, run.state) for run in found] == [
        ("new", "finished"),
        ("killed", "interrupted"),
        ("failed", "failed"),
        ("old", "finished"),
        ("broken", "unreadable"),
        ("notes", "unreadable"),
    ]
    assert "not a JSON file" in found[4].reason
    assert "no run is here" in found[5].reason


def test_headline_figures(folder: Path) -> None:
    new, killed, failed, old, *_ = list_runs(folder)
    assert (new.valid, new.settled, new.round, new.mean) == (24, 24, 2, 15.0)
    assert new.target == pytest.approx(10.0)
    assert (old.valid, old.settled, old.round, old.mean) == (6, 8, 2, 10.0)
    assert (failed.mean, failed.rounds_settled) == (2.0, 1)
    assert (killed.mean, killed.round, killed.settled) == (None, None, 0)


def test_as_text(folder: Path) -> None:
    shown = listing(list_runs(folder), folder)
    assert max(map(len, shown.replace(str(folder), "runs").splitlines())) <= 80
    lines = shown.splitlines()
    assert lines[0].split() == ["name", "started", "state", "valid", "mean", "target"]
    assert lines[1].split()[0] == "made"
    assert lines[1].split()[3:] == ["finished", "100", "%", "15.00", "10.00"]
    assert lines[2] == f"  4x2x3  {folder / 'new'}"
    assert lines[3].split()[3:] == ["interrupted", "-", "-", "-"]
    assert f"  {folder / 'broken'}" in lines


def test_as_json(folder: Path) -> None:
    data = json.loads(json.dumps([as_data(run) for run in list_runs(folder)]))
    assert data[0]["path"] == str(folder / "new")
    assert data[3]["valid_share"] == 0.75
    assert data[1]["mean"] is None
    assert data[5]["reason"]


def test_a_run_itself_is_a_list_of_one(folder: Path) -> None:
    (run,) = list_runs(folder / "new")
    assert run.state == "finished"


def test_names_of_directories_cannot_steer_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "\x1b[31mred").mkdir()
    assert "\x1b" not in listing(list_runs(tmp_path), tmp_path)


def test_a_manifest_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "manifest.json").write_text('{"scenario": ["x"], "name": "an app"}')
    (run,) = list_runs(tmp_path)
    assert run.state == "unreadable"


def test_no_folder_and_no_runs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such folder"):
        list_runs(tmp_path / "nowhere")
    assert listing(list_runs(tmp_path), tmp_path) == f"no runs in {tmp_path}\n"


@pytest.mark.parametrize("separate", [False, True])
def test_groups_are_not_counted_twice(tmp_path: Path, separate: bool) -> None:
    with_groups(one_session(tmp_path / "run"), ["red", "blue", "green"], separate=separate)
    (run,) = list_runs(tmp_path)
    assert (run.settled, run.valid, run.rounds_settled) == (8, 6, 2)
    assert run.mean == pytest.approx(10.0)
    assert (run.target is None) is separate


def test_a_sweep_is_a_line_and_its_cells_are_listed_when_it_is_named(tmp_path: Path) -> None:
    cells = [
        Cell(number=n, name=f"{n:04d}", words="", set={"seed": n}, scenario={}, **fields)
        for n, fields in enumerate(
            ({"state": "finished", "runs": ("cells/a",)}, {"state": "failed", "reason": "x"}, {}), 1
        )
    ]
    path = tmp_path / "runs" / "swept"
    asked = Asked(folder="/", file="/s.yaml")
    SweepDirectory(path).create(make_sweep("s", cells, asked, {}))
    one_session(path / "cells" / "a")
    (sweep,) = list_runs(path.parent)
    assert (sweep.name, sweep.state) == ("s", "interrupted")
    assert as_data(sweep)["cells"] == {"finished": 1, "failed": 1, "waiting": 1}
    text = listing([sweep], path.parent)
    assert "1 of 3 cells finished, 1 failed, 1 waiting  " in text
    assert [run.path.name for run in list_runs(path)] == ["swept", "a"]
