"""Each folder of `commands` is one run of the command line, with all that it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from snapshots import BAD_FILES, COMMANDS, Played, arguments, expected, play

from agentsim.cli.failures import as_data
from agentsim.errors import LimitReached
from agentsim.version import __version__

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case.name)
def test_all_that_is_printed(case: Path) -> None:
    assert play(case, arguments(case)) == expected(case)


@pytest.mark.parametrize("name", ["two_places_json", "unknown_flag", "explain_a_code"])
def test_a_process_of_its_own_prints_the_same(name: str) -> None:
    (case,) = [path for path in COMMANDS if path.name == name]
    done = subprocess.run(
        [sys.executable, "-m", "agentsim", *arguments(case)],
        cwd=case,
        env={"COLUMNS": "80", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert Played(done.returncode, done.stdout, done.stderr, ()) == expected(case)


@pytest.mark.parametrize("case", BAD_FILES, ids=lambda case: case.name)
def test_findings_as_json_are_those_of_the_text(case: Path) -> None:
    played = play(case, [*arguments(case), "--error-format", "json"])
    text = expected(case).err
    items = json.loads(played.err)
    assert (played.code, played.out) == (2, "")
    shown = [line for line in text.splitlines() if line.startswith("error[")]
    assert [f"error[{item['code']}]: {item['message']}" for item in items] == shown
    for item in items:
        place = f":{item['line']}:{item['column']}" if item["line"] else ""
        assert f"--> {item['file']}{place}\n" in text
        assert f"= expected {item['expected']}\n" in text or not item["expected"]
        assert f"hint: {item['hint']}\n" in text or not item["hint"]
        for other in item["related"]:
            assert f"note: {other['note']}\n" in text


def test_json_can_be_printed_on_any_terminal() -> None:
    (case,) = [path for path in BAD_FILES if path.name == "wide_characters"]
    assert play(case, [*arguments(case), "--error-format", "json"]).err.isascii()


def test_a_failed_run_is_a_map_in_json() -> None:
    assert as_data(LimitReached("more than 5 tokens")) == {
        "error": "limit-reached",
        "message": "more than 5 tokens",
        "exit_code": 1,
    }


def test_the_version() -> None:
    assert play(COMMANDS[0], ["version"]) == Played(0, f"{__version__}\n", "", ())


@pytest.mark.parametrize("kind", ["scenario", "population", "hostfile"])
def test_the_schema_is_the_one_that_is_shipped(kind: str) -> None:
    shipped = (ROOT / "schemas" / f"{kind}.json").read_text("utf-8")
    assert play(COMMANDS[0], ["schema", kind]) == Played(0, shipped, "", ())


def test_without_arguments_the_commands_are_listed() -> None:
    played = play(COMMANDS[0], [])
    assert played.code == 2
    for command in ("run", "validate", "replies", "schema", "explain", "version"):
        assert f"\n  {command} " in played.out + played.err
