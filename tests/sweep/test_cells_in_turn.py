"""Cells one after the other: failures, interrupts, resuming, shared people."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest
from sweep_samples import Stand, begun, play, read, stand_in

from agentsim.config import load_any, split_set
from agentsim.errors import ConfigError, DiskFull, ModelError, ResultsError, UserError
from agentsim.games import GAMES
from agentsim.results.sweep import Asked, SweepDirectory
from agentsim.sweep import Changes, read_again, refuse_other
from agentsim.sweep.begin import command_of


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Stand:
    return stand_in(monkeypatch)


def states(directory: SweepDirectory) -> list[str]:
    return [cell.state for cell in directory.read().cells]


def test_all_cells_are_played_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand = stand_in(monkeypatch, nodes=True)
    loaded = read(tmp_path, "{seed: [5, 6], rounds: [1, 2]}")
    directory = begun(loaded, tmp_path)
    assert states(directory) == ["waiting"] * 4
    shown = play(loaded, directory)
    assert shown.cells == [1, 2, 3, 4]
    assert shown.states == ["finished"] * 4 == states(directory)
    assert [path.name for path in stand.played] == [
        "0001-seed-5+rounds-1",
        "0002-seed-5+rounds-2",
        "0003-seed-6+rounds-1",
        "0004-seed-6+rounds-2",
    ]
    assert directory.table.exists()
    assert directory.summary.exists()


def test_a_failed_cell_does_not_end_the_others(tmp_path: Path, stand: Stand) -> None:
    loaded = read(tmp_path, "{seed: [5, 6, 7]}")
    directory = begun(loaded, tmp_path)
    stand.faults[6] = ModelError("no such model\nmore of it")
    shown = play(loaded, directory)
    assert shown.states == ["finished", "failed", "finished"]
    assert shown.rows[1]["reason"] == "no such model"
    assert directory.read().state == "failed"


def test_a_failed_cell_is_tried_again_only_when_asked(tmp_path: Path, stand: Stand) -> None:
    loaded = read(tmp_path, "{seed: [5, 6]}")
    directory = begun(loaded, tmp_path)
    stand.faults[6] = ModelError("gone")
    play(loaded, directory)
    assert play(loaded, directory).cells == []
    stand.faults.clear()
    shown = play(loaded, directory, retry_failed=True)
    assert (shown.cells, states(directory)) == ([2], ["finished"] * 2)
    assert stand.resumed == [False, False, True]
    assert directory.read().cells[1].reason == ""


def test_an_interrupt_ends_the_sweep_and_it_goes_on(tmp_path: Path, stand: Stand) -> None:
    loaded = read(tmp_path, "{seed: [5, 6, 7]}")
    directory = begun(loaded, tmp_path)
    stand.faults[6] = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        play(loaded, directory)
    assert states(directory) == ["finished", "interrupted", "waiting"]
    assert directory.summary.exists()
    stand.faults.clear()
    shown = play(loaded, directory)
    assert shown.cells == [2, 3]
    assert states(directory) == ["finished"] * 3
    names = [path.name for path in stand.played]
    assert names == ["0001-seed-5", "0002-seed-6", "0002-seed-6", "0003-seed-7"]
    assert stand.resumed == [False, False, True, False]


def test_a_cell_that_had_hardly_begun_is_begun_anew(tmp_path: Path, stand: Stand) -> None:
    loaded = read(tmp_path, "{seed: [5]}")
    directory = begun(loaded, tmp_path)
    stand.faults[5] = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        play(loaded, directory)
    (stand.played[0] / "manifest.json").unlink()
    stand.faults.clear()
    play(loaded, directory)
    assert [path.name for path in stand.played] == ["0001-seed-5", "0001-seed-5.2"]
    assert stand.resumed == [False, False]
    assert directory.read().cells[0].runs == ("cells/0001-seed-5", "cells/0001-seed-5.2")


def test_a_full_disk_ends_the_sweep(tmp_path: Path, stand: Stand) -> None:
    loaded = read(tmp_path, "{seed: [5, 6]}")
    directory = begun(loaded, tmp_path)
    stand.faults[5] = DiskFull("no room", tmp_path)
    with pytest.raises(DiskFull):
        play(loaded, directory)
    assert states(directory) == ["interrupted", "waiting"]


def test_our_own_bug_ends_the_sweep_and_is_noted(tmp_path: Path, stand: Stand) -> None:
    loaded = read(tmp_path, "{seed: [5, 6]}")
    directory = begun(loaded, tmp_path)
    stand.faults[5] = ZeroDivisionError("oops")
    with pytest.raises(ZeroDivisionError):
        play(loaded, directory)
    assert directory.read().cells[0].reason == "a bug: ZeroDivisionError: oops"


def test_a_sweep_of_another_process_is_let_alone(tmp_path: Path, stand: Stand) -> None:
    loaded = read(tmp_path, "{seed: [5]}")
    directory = begun(loaded, tmp_path)
    with directory.held(), pytest.raises(ResultsError, match="process"):
        play(loaded, directory)
    assert stand.played == []


def test_people_are_made_once_and_shared(tmp_path: Path, stand: Stand) -> None:
    sweep = "{agents: [4, 6], game.target: [1/2 * mean, 2/3 * mean]}"
    loaded = read(tmp_path, sweep, more="population: people.yaml\n")
    directory = begun(loaded, tmp_path)
    shown = play(loaded, directory)
    assert shown.people_of == [1, 3]
    assert [made.path.name for made in stand.made] == ["0001.parquet"] * 2 + ["0002.parquet"] * 2
    assert [made.agents for made in stand.made] == [4, 4, 6, 6]


def test_people_that_nobody_shares_are_left_to_the_cell(tmp_path: Path, stand: Stand) -> None:
    sweep = "[{seed: 5}, {seed: 6}, {population: null}, {population: null, rounds: 3}]"
    loaded = read(tmp_path, sweep, more="population: people.yaml\n")
    shown = play(loaded, begun(loaded, tmp_path))
    assert shown.people_of == []
    assert stand.made == [None] * 4


def test_people_that_cannot_be_made_fail_their_cells_once(
    tmp_path: Path, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentsim import personas

    tried = []

    async def fail(order: personas.Order, *_: object, **__: object) -> None:
        tried.append(order.agents)
        raise ModelError("the writer is gone")

    monkeypatch.setattr(personas, "make", fail)
    sweep = "[{rounds: 1}, {rounds: 3}, {population: null}]"
    loaded = read(tmp_path, sweep, more="population: people.yaml\n")
    shown = play(loaded, begun(loaded, tmp_path))
    assert tried == [4]
    assert shown.states == ["failed", "failed", "finished"]
    assert "(cell 1): the writer is gone" in shown.rows[1]["reason"]


def test_what_was_asked_for_is_played_though_the_file_has_changed(tmp_path: Path) -> None:
    loaded = read(tmp_path, "{seed: [5, 6]}", more="population: people.yaml\n")
    directory = begun(loaded, tmp_path)
    (tmp_path / "small.yaml").write_text("name: other\n")
    (tmp_path / "people.yaml").unlink()
    again = read_again(directory, directory.read())
    assert [cell.loaded.scenario for cell in again.cells] == [
        cell.loaded.scenario for cell in loaded.cells
    ]
    assert again.cells[0].loaded.population == loaded.cells[0].loaded.population


def test_another_scenario_is_refused_with_what_differs(tmp_path: Path) -> None:
    loaded = read(tmp_path, "{seed: [5, 6]}", more="population: people.yaml\n")
    directory = begun(loaded, tmp_path)
    sweep = directory.read()
    refuse_other(directory, sweep, loaded)
    with pytest.raises(UserError, match="cell 2: seed was 6, is 7"):
        refuse_other(directory, sweep, read(tmp_path, "{seed: [5, 7]}"))
    with pytest.raises(UserError, match="it has 2 cells, the scenario has 1"):
        refuse_other(directory, sweep, read(tmp_path, "{seed: [5]}"))
    with pytest.raises(UserError, match="the population is another one"):
        refuse_other(directory, sweep, read(tmp_path, "{seed: [5, 6]}"))


def test_nothing_is_begun_without_the_key_of_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MISSING_KEY", raising=False)
    sweep = "[{seed: 1}, {model: {backend: openai, name: x, api_key_env: MISSING_KEY}}]"
    loaded = read(tmp_path, sweep)
    with pytest.raises(UserError, match="MISSING_KEY"):
        begun(loaded, tmp_path)
    assert not (tmp_path / "out").exists()


def test_hosts_and_limits_may_be_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = read(tmp_path, "{seed: [5, 6]}", more="limits: {tokens: 10}\n")
    directory = begun(loaded, tmp_path)
    sweep = directory.read()
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    Path("h.yaml").write_text("hosts: [{workers: 1}, {address: b}]\n")
    changes = Changes((("limits.tokens", "20", "--set"),), Path("h.yaml"), 3)
    again = read_again(directory, sweep, changes)
    for cell in again.cells:
        assert cell.loaded.scenario.limits.tokens == 20
        assert [host.workers for host in cell.loaded.hostfile.hosts] == [3, 3]
    with pytest.raises(UserError, match="only its limits can be others"):
        read_again(directory, sweep, Changes((("rounds", "20", "--set"),)))
    with pytest.raises(ConfigError):
        read_again(directory, sweep, Changes((("limits.tokens", "no", "--set"),)))


def test_a_cell_alone_can_be_asked_for_again(tmp_path: Path) -> None:
    sweep = "[{game.target: 1/2 * mean, model: {backend: level_k}}, {name: 'true'}]"
    first, second = read(tmp_path, sweep).cells
    asked = Asked(
        folder="/",
        file="/a b.yaml",
        overrides=(("rounds", "3", "--rounds"), ("seed", "4", "--set")),
        hosts="/h.yaml",
        workers=2,
    )
    words = shlex.split(command_of(asked, first))
    assert words[:11] == [
        *("agentsim", "run", "/a b.yaml", "--rounds", "3", "--set", "seed=4"),
        *("--hosts", "/h.yaml", "--workers", "2"),
    ]
    texts = words[12::2]
    assert words[11::2] == ["--set"] * 3
    again = load_any(tmp_path / "small.yaml", games=GAMES, overrides=map(split_set, texts))
    assert again.scenario == first.loaded.scenario
    assert command_of(asked, second).endswith("""--set 'name="true"'""")
    assert first.loaded.overrides == ("game.target=1/2 * mean", "model={backend: level_k}")
