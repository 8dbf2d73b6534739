"""agentsim's own figures: commands that exist, and tables of what they print."""

from __future__ import annotations

import shlex

import pytest
from typer.main import get_command

from agentsim.cli.bench import bench
from benchmarks import own
from benchmarks.slopes import Spread


@pytest.mark.parametrize("name", sorted(own.COMMANDS))
def test_commands_are_those_of_agentsim_bench(name: str) -> None:
    command, *words = shlex.split(own.COMMANDS[name])
    commands = get_command(bench).commands
    commands[command].make_context(command, [*words, "--json"])  # raises if a flag is wrong


def test_a_command_that_failed_is_told_and_has_no_table() -> None:
    made = own.sections({"coroutines": {"failed": True}})
    assert made == {
        "own-commands": f"- `agentsim bench {own.COMMANDS['coroutines']}`: "
        "did not end well on this machine"
    }


def test_unknown_names_are_refused(capsys) -> None:
    assert own.main(["--only", "nothing"]) == 2
    assert "nothing is none of players, " in capsys.readouterr().err


def test_single_runs_are_not_kept() -> None:
    assert own.slim({"players": {"repeats": 3, "runs": [1, 2, 3]}}) == {"players": {"repeats": 3}}


def test_figures_come_with_their_spread() -> None:
    found = {"cpu_s": 2.0, "cpu_s_min": 1.0, "cpu_s_max": 4.0}
    assert own.of(found, "cpu_s") == Spread(2.0, 1.0, 4.0)
