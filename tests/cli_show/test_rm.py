"""`agentsim rm`: asks first, and removes nothing but runs and sweeps that nobody writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from made_runs import MadeRun, one_session
from typer.testing import CliRunner

from agentsim.cli.app import app
from agentsim.errors import UserError
from agentsim.results import Journal, RunDirectory
from agentsim.results.removal import look_at, remove
from agentsim.results.sweep import Asked, Cell, SweepDirectory, make_sweep


def a_sweep(path: Path) -> SweepDirectory:
    cell = {"number": 1, "name": "a", "words": "", "set": {}, "scenario": {}}
    cells = [Cell(**cell, state="finished", runs=("cells/a",))]
    directory = SweepDirectory(path)
    directory.create(make_sweep("swept", cells, Asked(folder="/", file="/s.yaml"), {}))
    one_session(path / "cells" / "a")
    return directory


def answered(monkeypatch: pytest.MonkeyPatch, *args: str | Path, keys: str) -> tuple[int, str]:
    """The command on a terminal, with what is typed."""
    monkeypatch.setattr("agentsim.cli.rm.is_terminal", lambda: True)
    result = CliRunner().invoke(app, ["rm", *map(str, args)], input=keys)
    return result.exit_code, result.output


def test_it_says_what_would_go_and_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = one_session(tmp_path / "run")
    code, out = answered(monkeypatch, run, keys="n\n")
    assert (code, run.exists()) == (1, True)
    assert "run, finished, " in out
    assert " 18 rows" in out
    assert str(run) in out
    code, out = answered(monkeypatch, run, keys="y\n")
    assert (code, run.exists()) == (0, False)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_answer_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = one_session(tmp_path / "run")
    assert answered(monkeypatch, run, keys="\n")[0] == 1
    assert run.exists()


def test_without_a_terminal_it_refuses_unless_told(tmp_path: Path) -> None:
    run, other = one_session(tmp_path / "run"), a_sweep(tmp_path / "sweep").path
    result = CliRunner().invoke(app, ["rm", str(run)], input="y\n")
    assert isinstance(result.exception, UserError)
    assert result.exception.exit_code == 2
    assert run.exists()
    result = CliRunner().invoke(app, ["rm", "--yes", str(run), str(other)])
    assert result.exit_code == 0
    assert "swept: sweep of 1 cell," in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_goes_with_its_runs_and_a_cell_not_alone(tmp_path: Path) -> None:
    sweep = a_sweep(tmp_path / "sweep")
    with pytest.raises(UserError, match="is a cell of the sweep"):
        look_at(sweep.cells / "a")
    doomed = look_at(sweep.path)
    assert (doomed.cells, doomed.rows, doomed.state) == (1, 18, "finished")
    remove(doomed)
    assert not sweep.path.exists()


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "run", {}, end=None).write()
    doomed = look_at(run)
    with Journal.open(RunDirectory(run).journal):
        with pytest.raises(UserError, match="is being written"):
            look_at(run)
        with pytest.raises(Exception, match="process"):
            remove(doomed)
    sweep = a_sweep(tmp_path / "sweep")
    with sweep.held(), pytest.raises(UserError, match="is being written"):
        look_at(sweep.path)
    journal = RunDirectory(sweep.cells / "a").journal
    with Journal.open(journal), pytest.raises(UserError, match="is being written"):
        look_at(sweep.path)


@pytest.mark.parametrize("kind", ["nothing", "a file", "a folder", "a folder of runs", "a link"])
def test_what_is_no_run_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    if kind == "a file":
        path.write_text("x")
    elif kind == "a folder":
        path.mkdir()
        (path / "manifest.json").write_text('{"name": "a web page"}')
        (path / "journal.log").write_text("dear diary")
    elif kind == "a folder of runs":
        one_session(path / "run")
    elif kind == "a link":
        path.symlink_to(one_session(tmp_path / "run"))
    with pytest.raises(UserError):
        look_at(path)
    assert os.path.lexists(path) == (kind != "nothing")


def test_nothing_goes_when_one_of_them_is_no_run(tmp_path: Path) -> None:
    run = one_session(tmp_path / "run")
    (tmp_path / "notes").mkdir()
    result = CliRunner().invoke(app, ["rm", "--yes", str(run), str(tmp_path / "notes")])
    assert isinstance(result.exception, UserError)
    assert run.exists()


def test_where_one_is_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = one_session(tmp_path / "run")
    monkeypatch.chdir(run / "actions")
    with pytest.raises(UserError, match="is where you are"):
        look_at(run)


@pytest.mark.parametrize("name", ["manifest.json", "journal.log"])
def test_a_damaged_run_can_go(tmp_path: Path, name: str) -> None:
    run = one_session(tmp_path / "run")
    (run / name).write_text("{")
    remove(look_at(run))
    assert not run.exists()
