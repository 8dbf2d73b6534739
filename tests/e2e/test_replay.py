"""Whole runs that replay another: the same table with no model; what differs is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentsim import load_run
from agentsim.models.replay import UNRECORDED


@pytest.fixture
def first(program, model_server, scenario) -> Callable[..., Path]:
    """Plays a run whose first replies are of no use, so that agents are asked again."""

    def play(**fields: Any) -> Path:
        # Fewer than one agent's attempts, so that all have an answer in the end.
        url = model_server("--mode", "garbage", "--after", "8", "--first", "2")
        model = {"backend": "openai", "name": "fake", "base_url": url}
        fields = {"prompt": "direct", "agents": 12} | fields
        file = scenario(name="first", model=model, **fields)
        program.run("run", file, "--out", "R", "--quiet")
        return program.folder / "R"

    return play


def replay(scenario, **fields: Any) -> Path:
    model = {"backend": "replay", "run": "R"}
    fields = {"prompt": "direct", "agents": 12} | fields
    return scenario(name="again", model=model, **fields)


def test_a_replay_gives_the_same_tables(program, first, scenario) -> None:
    before = load_run(first(sessions=2))
    assert "no_answer" in before.requests["status"].to_list()
    program.run("run", replay(scenario, sessions=2), "--workers", "3", "--out", "S", "--quiet")
    after = load_run(program.folder / "S")
    assert after.table("actions").equals(before.table("actions"))
    rows = [
        run.requests.drop(columns="worker").sort_values(["session", "round", "agent", "attempt"])
        for run in (before, after)
    ]
    assert rows[0].astype(str).values.tolist() == rows[1].astype(str).values.tolist()
    assert after.manifest["replay"]["run_id"] == before.manifest["run_id"]
    assert after.manifest["reply_format"] == before.manifest["reply_format"]
    replayed = after.summary["replay"]
    assert replayed["same"] == replayed["requests"] == len(before.requests)
    out, _ = program.run("diff", "R", "S")
    assert "Equal in everything that decides the result." in out


@pytest.mark.slow
def test_a_replay_that_was_cut_goes_on_from_anywhere(program, first, scenario) -> None:
    first(sessions=2, rounds=3)
    file = replay(scenario, sessions=2, rounds=3, limits={"tokens": 4000})
    program.run("run", file, "--out", "S", "--quiet", code=1)
    out, _ = program.run("diff", "R", "S", code=1)
    assert "Equal in all that both have; one of them has more." in out
    (program.folder / "elsewhere").mkdir()
    program.folder = program.folder / "elsewhere"
    program.run("resume", "../S", "--set", "limits.tokens=9000000", "--quiet")
    program.run("diff", "../R", "../S")


@pytest.mark.slow
def test_other_prompts_are_told(program, first, scenario) -> None:
    first()
    game = {"type": "guess_average", "target": "1/2 * mean"}
    out, _ = program.run("run", replay(scenario, game=game), "--out", "S")
    again = load_run(program.folder / "S")
    assert again.summary["replay"]["other"] == len(again.requests)
    assert "prompts are not those that were recorded" in " ".join(out.split())
    assert "first: session 1, round 1, agent 0, attempt 1: message 1 (system)" in out
    out, _ = program.run("diff", "R", "S", code=1)
    assert "The runs part at: files." in out


@pytest.mark.slow
def test_what_was_not_recorded_fails_and_is_counted(program, first, scenario) -> None:
    first(replies={"attempts": 1}, limits={"missing_share": 1})
    file = replay(scenario, replies={"attempts": 2}, limits={"missing_share": 1})
    program.run("run", file, "--out", "S", "--quiet")
    again = load_run(program.folder / "S").requests.query("attempt == 1")
    assert set(again["error"]) == {UNRECORDED}
    assert set(again["status"]) == {"failed"}
    assert load_run(program.folder / "S").summary["replay"]["unrecorded"] == len(again)


@pytest.mark.slow
@pytest.mark.parametrize("population", ["people.yaml", "R/personas.parquet"])
def test_characters_in_groups_with_all_that_they_remember(
    program, first, scenario, population
) -> None:
    (program.folder / "people.yaml").write_text(
        "attributes:\n"
        "  education: {categories: {primary: 0.5, university: 0.5}}\n"
        "  age: {integer: {uniform: {low: 18, high: 90}}}\n"
    )
    fields = {
        "prompt": "character",
        "memory": "transcript",
        "rounds": 3,
        "game": {
            "type": "guess_average",
            "groups": {"by": "education", "scope": "separate"},
            "announce": {"what": ["mean"], "to": "group"},
        },
    }
    first(population="people.yaml", **fields)
    file = replay(scenario, population=population, **fields)
    program.run("run", file, "--out", "S", "--quiet", "--workers", "1")
    out, _ = program.run("diff", "R", "S")
    assert "personas  equal (12 people)" in out
