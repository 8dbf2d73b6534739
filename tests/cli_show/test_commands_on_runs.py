"""`agentsim report`, `show` and `runs` as programs, on a run of the program."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.quick
def test_run_then_report_show_and_runs(program: Any, scenario: Callable[..., Path]) -> None:
    file = scenario(model={"backend": "cognitive_hierarchy"}, sessions=2)
    program.run("run", file, "--out", "runs/one", "--quiet")

    home = program.folder / "home"
    home.mkdir()
    env = {"HOME": str(home), "DISPLAY": "", "XDG_CONFIG_HOME": str(home)}
    out, err = program.run("report", "runs/one", env=env)
    assert out == "runs/one/report/report.html\n"
    assert err == ""
    assert os.listdir(home) == []  # noqa: PTH208
    page = (program.folder / "runs" / "one" / "report" / "report.html").read_text()
    assert "40 of 40 actions are valid (100&nbsp;%)." in page

    out, err = program.run("show", "runs/one", "--session", "2", "--agent", "9", "--round", "2")
    assert out.startswith("test: session 2, agent 9\n")
    assert "round 2: ok, " in out
    assert err == ""

    out, _ = program.run("runs")
    assert out.splitlines()[1].split()[0] == "test"
    assert out.splitlines()[2] == "  10x2x2  runs/one"


@pytest.mark.slow
def test_a_report_lies_elsewhere_and_runs_are_data(
    program: Any, scenario: Callable[..., Path]
) -> None:
    program.run("run", scenario(), "--out", "runs/one", "--quiet")
    program.run("report", "runs/one")
    out, _ = program.run("report", "runs/one", "--out", "elsewhere")
    assert out == "elsewhere/report.html\n"
    page = (program.folder / "runs" / "one" / "report" / "report.html").read_text()
    assert (program.folder / "elsewhere" / "report.html").read_text() == page
    out, _ = program.run("runs", "runs", "--json")
    (run,) = json.loads(out)
    assert (run["state"], run["valid_share"], run["path"]) == ("finished", 1.0, "runs/one")


@pytest.mark.slow
def test_mistakes_exit_with_2_and_what_exists(program: Any, scenario: Callable[..., Path]) -> None:
    program.run("run", scenario(), "--out", "one", "--quiet")
    for arguments, words in (
        (("--agent", "10"), "there is no agent 10: the run has agents 0 to 9"),
        (("--session", "2"), "there is no session 2: the run has session 1 alone"),
        (("--round", "3"), "there is no round 3: the run has rounds 1 to 2"),
    ):
        out, err = program.run("show", "one", *arguments, code=2)
        assert (out, err) == ("", f"agentsim: error: {words}\n")
    _, err = program.run("report", "one", "--out", ".", code=2)
    assert "is no report" in err
    _, err = program.run("report", "nowhere", code=1)
    assert err == "agentsim: error: nowhere: no run is here: it does not exist\n"
    _, err = program.run("runs", code=2)
    assert err == "agentsim: error: runs: there is no such folder\n"
