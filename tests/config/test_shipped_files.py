"""Every file that is shipped loads, and its comments hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsim.config import LoadedSweep, load, load_runs
from agentsim.config.population import Categories
from agentsim.games import GAMES

ROOT = Path(__file__).parents[2]
ALL = sorted((ROOT / "scenarios").glob("*.yaml"))
SCENARIOS = [path for path in ALL if "\nworkflow:" not in path.read_text()]


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.stem)
def test_scenarios_load(path: Path) -> None:
    result = load_runs(path, games=GAMES)
    name = result.name if isinstance(result, LoadedSweep) else result.scenario.name
    assert name == path.stem.replace("_", "-")
    assert path.read_text().startswith("# ")


@pytest.mark.parametrize("path", sorted((ROOT / "populations").glob("*.yaml")), ids=str)
def test_populations_load(path: Path) -> None:
    overrides = [("population", str(path), "--set"), ("prompt", "character", "--set")]
    result = load(SCENARIOS[0], games=GAMES, overrides=overrides)
    assert result.population is not None


@pytest.mark.parametrize("path", sorted((ROOT / "hostfiles").glob("*.yaml")), ids=str)
def test_hostfiles_load(path: Path) -> None:
    assert load(SCENARIOS[0], games=GAMES, hosts=path).hostfile.hosts


def test_the_levels_of_education_are_equal() -> None:
    path = ROOT / "populations" / "education_levels.yaml"
    result = load(SCENARIOS[0], games=GAMES, overrides=[("population", str(path), "--set")])
    assert result.population is not None
    education = result.population.attributes["education"]
    assert isinstance(education, Categories)
    assert list(education.categories.values()) == [0.2] * 5


def test_the_laptop_has_two_workers() -> None:
    result = load(SCENARIOS[0], games=GAMES)
    assert [host.workers for host in result.hostfile.hosts] == [2]


def test_the_scenario_of_the_design_is_served_where_it_asks_for_nothing_more(
    tmp_path: Path,
) -> None:
    text = (ROOT / "scenarios" / "guess_two_thirds.yaml").read_text()
    text = text.replace("../", f"{ROOT}/").replace(
        "{missing_share: 0.5}", ("{tokens: null, cost_usd: null, wall_s: null, missing_share: 0.5}")
    )
    text = text.replace("game:\n", "game:\n  groups: null\n")
    path = tmp_path / "s.yaml"
    path.write_text(text + "sweep: {}\n")
    assert load(path, games=GAMES).scenario.limits.missing_share == 0.5
