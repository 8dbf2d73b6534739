"""Sweeps: which cells there are, and what is said of wrong ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from config_samples import GAMES, POPULATION, SCENARIO, Coin, codes, write

from agentsim.config import GameFinding, LoadedSweep, Population, Scenario, load, load_runs
from agentsim.config.overrides import Override
from agentsim.errors import ConfigError, Finding


def swept(path: Path, *overrides: Override, hosts: Path | None = None) -> LoadedSweep:
    result = load_runs(path, games=GAMES, overrides=overrides, hosts=hosts)
    assert isinstance(result, LoadedSweep)
    return result


def wrong(path: Path, *overrides: Override, **options: Any) -> tuple[Finding, ...]:
    with pytest.raises(ConfigError) as caught:
        load_runs(path, games=GAMES, overrides=overrides, **options)
    return caught.value.findings


def test_a_grid_is_every_combination_and_the_last_key_varies_fastest(tmp_path: Path) -> None:
    text = SCENARIO + "sweep: {rounds: [1, 5], game.bias: [0.1, 0.20]}\n"
    result = swept(write(tmp_path, scenario=text))
    assert result.name == "coins"
    assert [cell.number for cell in result.cells] == [1, 2, 3, 4]
    assert [cell.words for cell in result.cells] == [
        "rounds=1, game.bias=0.1",
        "rounds=1, game.bias=0.20",
        "rounds=5, game.bias=0.1",
        "rounds=5, game.bias=0.20",
    ]
    played = [(c.loaded.scenario.rounds, c.loaded.game.bias) for c in result.cells]
    assert played == [(1, 0.1), (1, 0.2), (5, 0.1), (5, 0.2)]


def test_a_list_is_cells_one_by_one(tmp_path: Path) -> None:
    text = SCENARIO + "sweep:\n- {rounds: 1, seed: 4}\n- model: {backend: dummy}\n- {}\n"
    result = swept(write(tmp_path, scenario=text))
    assert [cell.words for cell in result.cells] == [
        "rounds=1, seed=4",
        "model={backend: dummy}",
        "as it is",
    ]
    scenarios = [cell.loaded.scenario for cell in result.cells]
    assert [(one.rounds, one.seed) for one in scenarios] == [(1, 4), (2, 1), (2, 1)]
    assert [one.model.backend for one in scenarios] == ["random", "dummy", "random"]


def test_what_is_within_another_value_is_set_after_it(tmp_path: Path) -> None:
    text = SCENARIO + "sweep: {model.think_s: [2.0, 3.0], model: [{backend: dummy, think_s: 1}]}\n"
    result = swept(write(tmp_path, scenario=text))
    assert [cell.loaded.scenario.model.think_s for cell in result.cells] == [2.0, 3.0]


def test_files_are_named_from_where_the_scenario_is(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    path = write(tmp_path, scenario=SCENARIO, people=POPULATION)
    moved = path.rename(tmp_path / "below" / "scenario.yaml")
    moved.write_text(SCENARIO + "sweep: {population: [../people.yaml, null]}\n")
    first, second = swept(moved).cells
    assert first.loaded.population is not None
    assert second.loaded.population is None
    assert len(swept(moved).files) == 2


@pytest.mark.parametrize("empty", ["{}", "[]", "null"])
def test_an_empty_sweep_is_none(tmp_path: Path, empty: str) -> None:
    path = write(tmp_path, scenario=SCENARIO + f"sweep: {empty}\n")
    assert not isinstance(load_runs(path, games=GAMES), LoadedSweep)
    assert load(path, games=GAMES).scenario.sweep is None


def test_the_command_line_sets_what_is_beneath(tmp_path: Path) -> None:
    path = write(tmp_path, scenario=SCENARIO + "sweep: {game.bias: [0.1, 0.2]}\n")
    result = swept(path, ("rounds", "7", "--rounds"), ("game.sides", "[a, b]", "--set"))
    assert [cell.loaded.scenario.rounds for cell in result.cells] == [7, 7]
    assert [cell.loaded.game.sides for cell in result.cells] == [("a", "b")] * 2
    result = swept(path, ("sweep", "{rounds: [3, 4, 5]}", "--set"))
    assert [cell.loaded.scenario.rounds for cell in result.cells] == [3, 4, 5]


@pytest.mark.parametrize(
    ("key", "flag"), [("game", "--set"), ("agents", "--agents"), ("game.bias", "--set")]
)
def test_a_key_is_swept_or_set(tmp_path: Path, key: str, flag: str) -> None:
    sweep = {
        "game": "game: [{type: coin}]",
        "agents": "agents: [2]",
        "game.bias": "game: [{type: coin}]",
    }
    path = write(tmp_path, scenario=SCENARIO + f"sweep:\n  {sweep[key]}\n")
    value = "4" if key == "agents" else "{type: coin}" if key == "game" else "0.1"
    (finding,) = wrong(path, (key, value, flag))
    assert (finding.code, finding.file) == ("contradiction", flag)
    assert [(item.file, item.line) for item in finding.related] == [(str(path), 7)]


def test_a_hostfile_is_swept_or_named(tmp_path: Path) -> None:
    hosts = "hosts: [{workers: 1}]\n"
    path = write(tmp_path, scenario=SCENARIO + "sweep: {hosts: [h.yaml]}\n", h=hosts)
    assert swept(path).cells[0].loaded.hostfile.hosts[0].workers == 1
    (finding,) = wrong(path, hosts=tmp_path / "h.yaml")
    assert (finding.code, finding.file) == ("contradiction", "--hosts")


def test_all_cells_are_checked_and_findings_point_into_the_sweep(tmp_path: Path) -> None:
    text = SCENARIO + "sweep:\n  game.bias: [0.5, 2, 3]\n  agents: [2, 3]\n"
    path = write(tmp_path, scenario=text)
    found = wrong(path)
    places = [(finding.code, finding.line, finding.column) for finding in found]
    assert places == [
        ("out-of-range", 7, 20),
        ("out-of-range", 7, 23),
        ("contradiction", 8, 15),
    ]


def test_a_slip_in_a_key_is_answered_in_the_sweep(tmp_path: Path) -> None:
    path = write(tmp_path, scenario=SCENARIO + "sweep: {game.bais: [0.5, x]}\n")
    found = wrong(path)
    assert [(f.code, f.line, f.column) for f in found] == [
        ("unknown-key", 6, 14),
        ("wrong-type", 6, 26),
    ]
    assert "did you mean `bias`?" in found[0].hint


def test_what_is_wrong_with_every_cell_is_said_once(tmp_path: Path) -> None:
    text = SCENARIO.replace("rounds: 2", "rounds: 0") + "sweep: {game.bias: [0.1, 0.2]}\n"
    (finding,) = wrong(write(tmp_path, scenario=text))
    assert (finding.code, finding.line, finding.related) == ("out-of-range", 3, ())


class LoadedCoin(Coin):
    """A coin that is sometimes too heavy."""

    def findings(self, scenario: Scenario, population: Population | None) -> Iterable[GameFinding]:
        if self.bias > 0.8:
            yield GameFinding(("rounds",), "bad-value", "that many rounds break it")


def test_a_finding_of_some_cells_says_of_which(tmp_path: Path) -> None:
    text = SCENARIO + "sweep:\n  - {game.bias: 0.9}\n  - {}\n  - {game.bias: 1, seed: 3}\n"
    path = write(tmp_path, scenario=text)
    with pytest.raises(ConfigError) as caught:
        load_runs(path, games={"coin": LoadedCoin})
    (finding,) = caught.value.findings
    (related,) = finding.related
    assert (finding.line, related.line) == (3, 7)
    assert related.note == "in cell 1 of the sweep, and 1 more: game.bias=0.9"


@pytest.mark.parametrize(
    ("sweep", "code", "words"),
    [
        ("direct", "wrong-type", "must be a map of lists, or a list of maps"),
        ("{prompt: direct}", "wrong-type", "must be a list of values, found `direct`"),
        ("{prompt: []}", "out-of-range", "must not be empty"),
        ("[3]", "wrong-type", "cell 1 must be a map"),
        ("{game..bias: [1]}", "bad-value", "is not a dotted key"),
        ("{sweep.seed: [[1]]}", "bad-value", "cannot set a sweep"),
        ("{game.sides.7: [a]}", "wrong-type", "game.sides"),
        ("{seed: [1, 2, 1]}", "bad-value", "cell 3 is the same as cell 1"),
        (f"{{seed: {list(range(1001))}}}", "out-of-range", "makes 1,001 runs"),
    ],
)
def test_what_is_no_sweep(tmp_path: Path, sweep: str, code: str, words: str) -> None:
    found = wrong(write(tmp_path, scenario=SCENARIO + f"sweep: {sweep}\n"))
    assert code in codes(found)
    assert words in " ".join(finding.message for finding in found)
    assert {finding.line for finding in found} == {6}


def test_a_scenario_of_one_run_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, scenario=SCENARIO + "sweep: {seed: [1, 2]}\n")
    with pytest.raises(ConfigError, match="has a sweep"):
        load(path, games=GAMES)


def test_a_secret_in_a_sweep_is_not_shown(tmp_path: Path) -> None:
    path = write(tmp_path, scenario=SCENARIO + "sweep: {model.api_key: [sk-hidden, sk-other]}\n")
    for finding in wrong(path):
        assert "sk-" not in repr(finding)
