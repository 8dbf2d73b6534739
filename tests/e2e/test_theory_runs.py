"""Whole runs of scripted players: the published figures, and the same table however it is run."""

import json
from pathlib import Path

import pytest
import yaml
from whole_runs import ROOT, table

THEORY = ROOT / "scenarios" / "guess_two_thirds_theory.yaml"


def means(run: Path) -> list[float]:
    summary = json.loads((run / "summary.json").read_text())
    return [round["mean"] for round in summary["rounds"]]


@pytest.mark.quick
def test_cognitive_hierarchy_meets_its_figures(program) -> None:
    program.run("run", THEORY, "--agents", "10000", "--seed", "1", "--out", "R", "--quiet")
    first, *later = means(program.folder / "R")
    assert first == pytest.approx(33.50, abs=0.5)
    assert later == pytest.approx([22.4, 15.0, 10.1], abs=0.6)


def test_a_higher_tau_meets_its_figure(program) -> None:
    flags = ["--agents", "10000", "--seed", "1", "--rounds", "1", "--set", "model.tau=3"]
    program.run("run", THEORY, *flags, "--out", "R", "--quiet")
    assert means(program.folder / "R") == pytest.approx([23.81], abs=0.5)


@pytest.mark.parametrize(
    "model",
    [
        {"backend": "cognitive_hierarchy"},
        pytest.param({"backend": "level_k"}, marks=pytest.mark.slow),
        {"backend": "dummy", "think_s": 0.05, "jitter_s": 0.05},
    ],
    ids=["cognitive_hierarchy", "level_k", "dummy"],
)
def test_the_table_does_not_depend_on_workers_or_hosts(program, scenario, model) -> None:
    file = scenario(agents=3001, sessions=2, rounds=3, model=model)
    tables = []
    for workers in ("1", "2", "5"):
        program.run("run", file, "--workers", workers, "--out", f"w{workers}", "--quiet")
        tables.append(table(program.folder / f"w{workers}"))
    hosts = program.folder / "hosts.yaml"
    host = {"address": "localhost", "workers": 2}
    hosts.write_text(yaml.safe_dump({"launcher": "local", "hosts": [host, host]}))
    program.run("run", file, "--hosts", hosts, "--out", "h", "--quiet")
    tables.append(table(program.folder / "h"))
    assert len(tables[0]) == 3001 * 2 * 3
    assert all(rows == tables[0] for rows in tables)


def test_another_seed_is_another_table(program, scenario) -> None:
    file = scenario(agents=50)
    program.run("run", file, "--out", "a", "--quiet")
    program.run("run", file, "--out", "b", "--seed", "2", "--quiet")
    assert table(program.folder / "a") != table(program.folder / "b")


def test_more_workers_than_agents(program, scenario) -> None:
    program.run("run", scenario(agents=2), "--workers", "4", "--out", "R", "--quiet")
    assert len(table(program.folder / "R")) == 4
