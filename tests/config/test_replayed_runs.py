"""Scenarios that name a run to replay: found from the file, finished, and large enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from config_samples import SCENARIO, codes, findings, loaded, write

from agentsim.config import recorded_run
from agentsim.config.models import Replay
from agentsim.errors import UserError

REPLAYING = SCENARIO.replace("{backend: random}", "{backend: replay, run: ../runs/first}")


def recorded(path: Path, *, state: str | None = "finished", **changes: Any) -> None:
    """What the loader looks at of a run."""
    path.mkdir(parents=True)
    manifest = {
        "run_id": "a1",
        "reply_format": "text",
        "scenario": {"agents": 4, "sessions": 1, "rounds": 2, "model": {"name": "m"}},
    } | changes
    (path / "manifest.json").write_text(json.dumps(manifest))
    if state is not None:
        (path / "summary.json").write_text(json.dumps({"run": {"state": state}}))


@pytest.fixture
def scenarios(tmp_path: Path) -> Path:
    folder = tmp_path / "scenarios"
    folder.mkdir()
    return folder


def test_the_run_is_found_from_the_file_and_named_absolutely(tmp_path, scenarios) -> None:
    recorded(tmp_path / "runs" / "first")
    model = loaded(write(scenarios, scenario=REPLAYING)).scenario.model
    assert isinstance(model, Replay)
    assert model.run == str(tmp_path / "runs" / "first")
    run = recorded_run(model)
    assert (run.run_id, run.model, run.format, run.rounds) == ("a1", "m", "text", 2)


def test_a_run_that_is_named_by_a_flag_is_found_from_here(
    tmp_path, scenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "runs" / "first")
    monkeypatch.chdir(tmp_path)
    override = ("model", "{backend: replay, run: runs/first}", "--set")
    model = loaded(write(scenarios), override).scenario.model
    assert isinstance(model, Replay)
    assert model.run == str(tmp_path / "runs" / "first")


def test_a_replay_is_called_what_it_replays(tmp_path) -> None:
    replay = {"model": "m", "run": "elsewhere"}
    scenario = {"agents": 4, "sessions": 1, "rounds": 2, "model": {"backend": "replay"}}
    recorded(tmp_path / "R", scenario=scenario, replay=replay)
    assert recorded_run(Replay(backend="replay", run=str(tmp_path / "R"))).model == "m"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (None, "does not exist"),
        ({"state": None}, "has not finished: it has no summary.json"),
        ({"state": "interrupted"}, "has not finished (interrupted)"),
        ({"reply_format": None}, "has no replies: nobody played in it"),
        ({"scenario": {"workflow": "a:b"}}, "is the run of a program"),
        ({"run_id": None, "scenario": {}}, "is not of this version"),
    ],
)
def test_runs_that_cannot_be_replayed(tmp_path, scenarios, made, message) -> None:
    if made is not None:
        recorded(tmp_path / "runs" / "first", **made)
    (finding,) = findings(write(scenarios, scenario=REPLAYING))
    assert message in finding.message
    assert (finding.line, finding.source) == (5, "model: {backend: replay, run: ../runs/first}")


def test_a_directory_of_something_else(tmp_path, scenarios) -> None:
    (tmp_path / "runs" / "first").mkdir(parents=True)
    (finding,) = findings(write(scenarios, scenario=REPLAYING))
    assert "it has no manifest.json" in finding.message


def test_more_than_was_recorded_contradicts(tmp_path, scenarios) -> None:
    recorded(tmp_path / "runs" / "first")
    text = REPLAYING.replace("agents: 4", "agents: 6").replace("rounds: 2", "rounds: 3")
    (finding,) = findings(write(scenarios, scenario=text))
    assert finding.code == "contradiction"
    assert "has 4 agents, 2 rounds, the scenario needs 6, 3" in finding.message
    assert [there.note for there in finding.related] == ["agents 6", "rounds 3"]


def test_a_program_cannot_replay(tmp_path, scenarios) -> None:
    text = "name: p\nagents: 2\nworkflow: p:main\nmodel: {backend: replay, run: R}\n"
    (scenarios / "p.py").write_text("def main(run): ...\n")
    assert codes(findings(write(scenarios, scenario=text))) == ["not-served"]


def test_personas_are_taken_from_the_file_instead(tmp_path, scenarios) -> None:
    people = (
        "attributes: {a: {categories: {x: 1}}}\n"
        "persona: {writer: model, model: {backend: replay, run: R}}\n"
    )
    text = SCENARIO + "population: people.yaml\n"
    (finding,) = findings(write(scenarios, scenario=text, people=people))
    assert "RUN/personas.parquet" in finding.expected


def test_a_run_that_has_gone_is_said(tmp_path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        recorded_run(Replay(backend="replay", run=str(tmp_path / "gone")))
