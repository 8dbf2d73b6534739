"""Whole runs with groups: the same table however they are run, and from the journal alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from whole_runs import ROOT

from agentsim import load_run
from agentsim.results import RunDirectory, rebuild

POPULATION = """\
attributes:
  education: {categories: {primary: 0.25, secondary: 0.45, university: 0.3}}
  age: {integer: {uniform: {low: 18, high: 90}}}
"""
COLUMNS = ["session", "round", "agent", "group", "status", "value", "won", "payoff"]


def game(groups: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return {"type": "guess_average", "groups": groups, **parts}


def rows(run: Path, columns: list[str] = COLUMNS) -> list[tuple[Any, ...]]:
    table = pq.read_table(run / "actions", columns=columns).to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in table)


@pytest.mark.parametrize(
    ("groups", "model"),
    [
        pytest.param(
            {"count": 7, "scope": "pooled"}, "cognitive_hierarchy", marks=pytest.mark.slow
        ),
        ({"count": 7, "scope": "separate"}, "level_k"),
        pytest.param({"by": "education", "scope": "between"}, "random", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_table_does_not_depend_on_workers(program, scenario, groups, model) -> None:
    (program.folder / "population.yaml").write_text(POPULATION)
    file = scenario(
        agents=1001,
        sessions=2,
        rounds=3,
        game=game(groups, announce={"what": ["mean", "target"], "to": "group"}),
        population="population.yaml",
        model={"backend": model},
    )
    tables = []
    for workers in ("1", "2", "5"):
        program.run("run", file, "--workers", workers, "--out", f"w{workers}", "--quiet")
        tables.append(rows(program.folder / f"w{workers}"))
    assert len(tables[0]) == 1001 * 2 * 3
    assert all(table == tables[0] for table in tables)
    assert all(row[3] is not None for row in tables[0])


@pytest.mark.parametrize("scope", ["pooled", "separate", "between"])
def test_a_run_is_rebuilt_from_its_journal(program, scenario, scope) -> None:
    file = scenario(agents=100, sessions=2, rounds=3, game=game({"count": 3, "scope": scope}))
    program.run("run", file, "--out", "R", "--quiet")
    directory = RunDirectory(program.folder / "R")
    before = {name: load_run(directory.path).table(name) for name in ("actions", "announcements")}
    rebuild(directory)
    for name, table in before.items():
        assert load_run(directory.path).table(name).equals(table), name


def test_groups_of_an_attribute_are_those_who_have_it(program, scenario) -> None:
    (program.folder / "population.yaml").write_text(POPULATION)
    file = scenario(
        agents=40, sessions=2, game=game({"by": "education"}), population="population.yaml"
    )
    program.run("run", file, "--out", "R", "--quiet")
    run = load_run(program.folder / "R")
    both = run.actions.merge(run.personas, on=["session", "agent"])
    assert len(both) == 160
    assert (both["group"].astype(str) == both["education"].astype(str)).all()
    first = both[(both["session"] == 1) & (both["round"] == 1)]
    sizes = first["group"].astype(str).value_counts().to_dict()
    assert sizes == {"primary": 10, "secondary": 18, "university": 12}


def test_pooled_groups_change_nothing_but_the_column(program, scenario) -> None:
    model = {"backend": "cognitive_hierarchy"}
    for name, rules in (("none", {"type": "guess_average"}), ("p", game({"count": 3}))):
        file = scenario(agents=50, model=model, game=rules)
        program.run("run", file, "--out", name, "--quiet")
    columns = [name for name in COLUMNS if name != "group"]
    assert rows(program.folder / "none", columns) == rows(program.folder / "p", columns)
    assert {row[3] for row in rows(program.folder / "none")} == {None}
    assert {row[3] for row in rows(program.folder / "p")} == {"1", "2", "3"}


def test_each_market_is_settled_by_its_own_numbers(program, scenario) -> None:
    file = scenario(
        agents=50,
        rounds=2,
        game=game({"count": 8, "scope": "separate"}),
        model={"backend": "level_k"},
    )
    program.run("run", file, "--out", "R", "--quiet")
    run = load_run(program.folder / "R")
    told = {(row.round, row.group): row for row in run.announcements.itertuples()}
    assert len(told) == 16
    for key, of_market in run.actions.groupby(["round", "group"], observed=True):
        assert told[key].n == len(of_market)
        assert len(of_market) in (6, 7)
        assert told[key].target == pytest.approx(2 / 3 * of_market["value"].mean())
        distance = (of_market["value"] - told[key].target).abs()
        assert (of_market["won"] == np.isclose(distance, distance.min())).all()
        assert of_market["payoff"].sum() == pytest.approx(100)
    assert len(run.summary["groups"]) == 16


def test_slow_players_hold_up_only_their_own_market(program, scenario) -> None:
    """Players think for times that differ: groups of one player each go through their rounds
    without the others, so that the whole takes less than the slowest of each round together."""
    file = scenario(
        agents=8,
        rounds=3,
        game=game({"count": 8, "scope": "separate"}),
        model={"backend": "dummy", "think_s": 0.5, "jitter_s": 0.5},
    )
    program.run("run", file, "--out", "R", "--quiet")
    settled = load_run(program.folder / "R").announcements
    by_group = settled.groupby("group", observed=True)["wall_s"].sum()
    by_round = settled.groupby("round")["wall_s"].max()
    assert settled["group"].nunique() == 8
    assert by_group.max() < by_round.sum()
    summary = json.loads((program.folder / "R" / "summary.json").read_text())
    assert summary["run"]["state"] == "finished"


def test_three_groups_are_shipped(program) -> None:
    file = ROOT / "scenarios" / "three_groups.yaml"
    out, _ = program.run("run", file, "--out", "R")
    assert "by group; the group whose mean is closest to the target wins" in out
    assert max(map(len, out.splitlines())) <= 80
    told = load_run(program.folder / "R").announcements
    groups = told[told["group"].notna() & (told["round"] == 1)]
    whole = told[told["group"].isna() & (told["round"] == 1)].iloc[0]
    assert groups["n"].tolist() == [34, 33, 33]
    assert whole.target == pytest.approx(2 / 3 * groups["mean"].mean())
    closest = (groups["mean"] - whole.target).abs().idxmin()
    assert groups["winners"].tolist() == [
        row.n if row.Index == closest else 0 for row in groups.itertuples()
    ]
    level_k = ["--set", "game.groups.scope=separate", "--set", "model={backend: level_k}"]
    out, _ = program.run("run", file, *level_k, "--out", "S")
    assert "by group; each group is a market of its own" in out
