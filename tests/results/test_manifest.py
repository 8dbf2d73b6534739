from __future__ import annotations

import hashlib
import json
import platform
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest

from agentsim.errors import ResultsError
from agentsim.results import (
    RunDirectory,
    RunFacts,
    make_manifest,
    read_manifest,
    update_manifest,
    write_manifest,
)
from agentsim.version import __version__

SCENARIO = {
    "name": "a",
    "seed": 7,
    "game": {"type": "guess_average", "range": [0, 100]},
    "model": {"backend": "openai", "api_key_env": "PLANTED_KEY"},
}
FACTS = RunFacts(
    run_id="r1",
    scenario=SCENARIO,
    files={"scenarios/a.yaml": "name: ä\n"},
    command="agentsim run scenarios/a.yaml",
    rule={"low": 0.0, "high": 100.0, "slope": 2 / 3, "intercept": 0.0},
    equilibrium={"guesses": (0.0,), "words": "0 is the only one"},
)


def test_it_tells_what_was_run_with_what(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "r")
    moment = datetime(2026, 11, 30, 0, 19, tzinfo=timezone(timedelta(hours=1)))
    write_manifest(directory, make_manifest(FACTS, created=moment))
    read = read_manifest(directory.path)
    assert read["run_id"] == "r1"
    assert read["agentsim"] == __version__
    assert read["python"] == platform.python_version()
    assert read["created"] == "2026-11-29T23:19:00+00:00"
    assert read["packages"]["numpy"] == np.__version__
    assert read["files"] == {
        "scenarios/a.yaml": {
            "sha256": hashlib.sha256("name: ä\n".encode()).hexdigest(),
            "text": "name: ä\n",
        }
    }
    assert read["scenario"] == SCENARIO
    assert read["game"] == SCENARIO["game"]
    assert read["seeds"] == {"scenario": 7}
    assert read["rule"]["slope"] == 2 / 3
    assert read["equilibrium"] == {"guesses": [0.0], "words": "0 is the only one"}
    assert read["people"] is None


def test_fields_are_set_later(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "r")
    write_manifest(directory, make_manifest(FACTS))
    before = read_manifest(directory.path)
    assert before["endpoints"] == []
    after = update_manifest(directory, endpoints=[{"url": "http://127.0.0.1:1/v1"}], note=1)
    assert read_manifest(directory.path) == after
    assert after == before | {"endpoints": [{"url": "http://127.0.0.1:1/v1"}], "note": 1}


def test_keys_in_the_environment_stay_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-planted-0123456789"
    monkeypatch.setenv("PLANTED_KEY", key)
    monkeypatch.setenv("ANOTHER_SECRET", "another-planted-secret")
    directory = RunDirectory.create(tmp_path / "r")
    write_manifest(directory, make_manifest(FACTS))
    text = directory.manifest.read_text()
    assert key not in text
    assert "another-planted-secret" not in text
    assert "PLANTED_KEY" in text, "the name may stand there"


def test_a_key_that_slipped_into_a_file_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-planted-0123456789"
    monkeypatch.setenv("PLANTED_KEY", key)
    directory = RunDirectory.create(tmp_path / "r")
    contents = make_manifest(FACTS)
    contents["files"]["a.yaml"] = {"text": f"# my key is {key}\n"}
    write_manifest(directory, contents)
    update_manifest(directory, endpoints=[{"url": f"https://me:{key}@example.org/v1"}])
    assert key not in directory.manifest.read_text()
    assert read_manifest(directory.path)["files"]["a.yaml"]["text"] == "# my key is [secret]\n"


def test_it_is_json_for_people(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "r")
    write_manifest(directory, make_manifest(FACTS) | {"plan": {"share": float("nan")}})
    text = directory.manifest.read_text()
    assert "name: ä" in text
    assert text.count("\n") > 20
    assert json.loads(text, parse_constant=pytest.fail)["plan"] == {"share": None}


def test_a_missing_manifest_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"manifest\.json"):
        read_manifest(tmp_path)
