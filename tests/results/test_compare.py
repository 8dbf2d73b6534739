"""The layer at which two runs part, with the first difference of each layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_runs import FINISHED, Recorder, attempt

from agentsim.errors import ResultsError
from agentsim.report import differences
from agentsim.results import RunDirectory, read_manifest, update_manifest
from agentsim.results.compare import Comparison, compare
from agentsim.results.replayed import replay_summary
from agentsim.rpc.messages import Attempt, Message

ATTEMPTS = [
    attempt(0, 0, "ok", 30.0),
    attempt(1, 0, "no_answer"),
    attempt(1, 1, "ok", 45.0),
    attempt(2, 0, "ok", 60.0),
]


def talked(path: Path, attempts: Sequence[Attempt] = ATTEMPTS, **manifest: Any) -> RunDirectory:
    """A round of three agents that ask a model."""
    recorder = Recorder(path, agents=3, model="m")
    recorder.attempted(1, 1, [attempts])
    directory = recorder.end(FINISHED)
    update_manifest(directory, run_id=path.name, **manifest)
    return directory


def changed(number: int, **fields: Any) -> list[Attempt]:
    """The attempts, one of them with other fields."""
    attempts = list(ATTEMPTS)
    values = {name: getattr(attempts[number], name) for name in Attempt.__struct_fields__}
    attempts[number] = Attempt(**(values | fields))
    return attempts


def of(comparison: Comparison) -> dict[str, tuple[int, int, int]]:
    """What differs in the layers that do."""
    return {
        layer.name: (layer.differ, layer.only_left, layer.only_right)
        for layer in comparison.layers
        if not layer.equal
    }


def first(comparison: Comparison, name: str) -> Any:
    return next(layer for layer in comparison.layers if layer.name == name).first[0]


def test_order_of_arrival_workers_and_times_make_no_difference(tmp_path: Path) -> None:
    talked(tmp_path / "a")
    others = [changed(i, worker=7, latency_s=9.0)[i] for i in (3, 1, 2, 0)]
    talked(tmp_path / "b", others, plan={"hosts": [{"workers": 2}]}, host="another")
    found = compare(tmp_path / "a", tmp_path / "b")
    assert (found.parting, of(found)) == (None, {})
    assert {"workers", "host"} <= {item.what for item in found.told}
    assert "Equal in everything that decides the result." in differences.plain(found)


@pytest.mark.parametrize(
    ("fields", "layers"),
    [
        ({"messages": [Message("user", "again!")]}, {"prompts": (1, 0, 0)}),
        ({"seed": 5}, {"prompts": (1, 0, 0)}),
        ({"text": "I guess 4"}, {"replies": (1, 0, 0)}),
        ({"status": "ambiguous"}, {"reading": (1, 0, 0)}),
    ],
)
def test_the_layer_of_an_attempt(tmp_path: Path, fields, layers) -> None:
    talked(tmp_path / "a")
    talked(tmp_path / "b", changed(1, **fields))
    found = compare(tmp_path / "a", tmp_path / "b")
    assert of(found) == layers
    assert found.parting is not None
    difference = first(found, found.parting.name)
    assert difference.place == "session 1, round 1, agent 1, attempt 1"
    assert difference.where == {"session": 1, "round": 1, "agent": 1, "step": 0, "attempt": 0}
    assert f"part at: {found.parting.name}" in differences.plain(found)


def test_a_prompt_is_shown_around_its_first_difference(tmp_path: Path) -> None:
    long = "x" * 300
    for name, number in (("a", "23.41"), ("b", "23.42")):
        messages = [Message("system", "the rules"), Message("user", f"{long} was {number} {long}")]
        talked(tmp_path / name, changed(3, messages=messages))
    difference = first(compare(tmp_path / "a", tmp_path / "b"), "prompts")
    assert (difference.what, difference.at) == ("message 2 (user)", 310)
    assert " was 23.41 x" in difference.left
    assert " was 23.42 x" in difference.right
    assert len(difference.left) < 80


def test_requests_that_one_run_has_alone(tmp_path: Path) -> None:
    talked(tmp_path / "a")
    talked(tmp_path / "b", [*ATTEMPTS[:1], ATTEMPTS[2], ATTEMPTS[3]])
    found = compare(tmp_path / "a", tmp_path / "b")
    assert of(found) == {"prompts": (0, 1, 0), "results": (1, 0, 0)}  # attempts it took


def test_fields_of_the_files(tmp_path: Path) -> None:
    talked(tmp_path / "a")
    scenario = read_manifest(tmp_path / "a")["scenario"]
    game = {**scenario["game"], "range": [0, 200]}
    talked(tmp_path / "b", scenario={**scenario, "name": "b", "game": game, "memory": "none"})
    found = compare(tmp_path / "a", tmp_path / "b")
    assert found.parting is not None
    assert [(d.what, d.left, d.right) for d in found.parting.first] == [
        ("game.range", "[0, 100]", "[0, 200]"),
        ("memory", "", "none"),
    ]
    assert [(d.what, d.left) for d in found.told if d.what != "created"] == [
        ("name", "guess-two-thirds")
    ]


def test_versions(tmp_path: Path) -> None:
    talked(tmp_path / "a")
    packages = {**read_manifest(tmp_path / "a")["packages"], "numpy": "1.0"}
    talked(tmp_path / "b", packages=packages)
    assert of(compare(tmp_path / "a", tmp_path / "b")) == {"versions": (1, 0, 0)}


def served(sha256: str, **fields: Any) -> dict[str, Any]:
    """A manifest's part about models."""
    host = {"host": "h", "file": {"name": "m.gguf", "sha256": sha256}, "about": {}} | fields
    return {"players": [host, host]}


def test_models_are_told_by_their_file_or_by_what_their_server_says(tmp_path: Path) -> None:
    talked(tmp_path / "a", models=served("1", host="elsewhere", about={"answers_as": "/a/m.gguf"}))
    talked(tmp_path / "b", models=served("1", about={"answers_as": "/b/m.gguf"}))
    talked(tmp_path / "c", models=served("2"))
    assert compare(tmp_path / "a", tmp_path / "b").parting is None
    assert of(compare(tmp_path / "a", tmp_path / "c")) == {"versions": (1, 0, 0)}
    talked(tmp_path / "d", models=served("", file=None, about={"answers_as": "gpt-may"}))
    talked(tmp_path / "e", models=served("", file=None, about={"answers_as": "gpt-june"}))
    difference = first(compare(tmp_path / "d", tmp_path / "e"), "versions")
    assert (difference.what, difference.right) == ("players: answers_as", "gpt-june")


def test_a_run_that_went_on_with_another_version_is_of_both(tmp_path: Path) -> None:
    talked(tmp_path / "a", sources="1")
    talked(tmp_path / "b", sources="2")
    found = compare(tmp_path / "a", tmp_path / "b")
    assert found.parting is None
    assert "sources of agentsim" in {item.what for item in found.told}
    talked(tmp_path / "c", resumes=[{"agentsim": "9.9"}])
    difference = first(compare(tmp_path / "a", tmp_path / "c"), "versions")
    assert difference.right.endswith(", 9.9")


def test_personas(tmp_path: Path) -> None:
    for name, job in (("a", "nurse"), ("b", "farmer")):
        talked(tmp_path / name)
        people = pa.table(
            {
                "session": pa.array([1, 1], pa.int32()),
                "agent": pa.array([0, 1], pa.int32()),
                "job": pa.array(["clerk", job]).dictionary_encode(),
                "background": ["is a clerk", f"is a {job}"],
            }
        )
        pq.write_table(people, tmp_path / name / "personas.parquet")
    found = compare(tmp_path / "a", tmp_path / "b")
    assert of(found) == {"personas": (1, 0, 0)}
    assert first(found, "personas").place == "session 1, agent 1"
    (tmp_path / "b" / "personas.parquet").unlink()
    assert of(compare(tmp_path / "a", tmp_path / "b")) == {"personas": (0, 2, 0)}


def test_scripted_players_part_at_their_results(tmp_path: Path) -> None:
    for name, value in (("a", 50.0), ("b", 51.0)):
        recorder = Recorder(tmp_path / name, agents=4, rounds=2)
        recorder.scripted(1, 1, [10, 20, 30, 40])
        recorder.scripted(1, 2, [10, 20, 30, value])
        recorder.end(FINISHED)
    found = compare(tmp_path / "a", tmp_path / "b")
    assert of(found) == {"results": (2, 0, 0)}
    difference = first(found, "results")
    assert (difference.place, difference.what) == ("session 1, round 2, agent 3", "value")
    assert (difference.left, difference.right) == ("50.0", "51.0")


def test_an_unfinished_run_lacks_rounds_and_is_equal_before(tmp_path: Path) -> None:
    for name, rounds in (("a", 3), ("b", 2)):
        recorder = Recorder(tmp_path / name, agents=4, rounds=3)
        for round in range(1, rounds + 1):
            recorder.scripted(1, round, [10, 20, 30, 40])
        recorder.end(FINISHED if rounds == 3 else None)
    found = compare(tmp_path / "a", tmp_path / "b")
    assert of(found) == {"results": (0, 5, 0)}  # four actions and what was announced
    assert (found.left.settled, found.right.settled, found.right.state) == (3, 2, "interrupted")
    assert found.equal_so_far
    assert "Equal in all that both have; one of them has more." in differences.plain(found)
    assert "interrupted, 2 of 3 rounds settled" in differences.plain(found)


def test_a_replay_is_no_other_model(tmp_path: Path) -> None:
    talked(tmp_path / "a", models=served("1"))
    scenario = read_manifest(tmp_path / "a")["scenario"]
    model = {"backend": "replay", "run": "a"}
    talked(
        tmp_path / "b",
        replay={"run": str(tmp_path / "a"), "run_id": "a", "model": "m"},
        scenario={**scenario, "model": model},
    )
    found = compare(tmp_path / "a", tmp_path / "b")
    assert found.parting is None
    assert "model" in {item.what for item in found.told}


def test_what_is_no_run(tmp_path: Path) -> None:
    talked(tmp_path / "a")
    with pytest.raises(ResultsError, match="no run is here"):
        compare(tmp_path / "a", tmp_path / "b")


def replaying(path: Path, attempts: Sequence[Attempt], run: Path) -> dict[str, Any]:
    replay = {"run": str(run), "run_id": "a", "model": "m"}
    directory = talked(path, attempts, replay=replay)
    summary = replay_summary(directory, read_manifest(path))
    assert summary is not None
    return summary


def test_a_replay_says_where_prompts_differ(tmp_path: Path) -> None:
    talked(tmp_path / "a")
    attempts = changed(3, messages=[Message("system", "other rules"), ATTEMPTS[3].messages[1]])
    attempts[0] = changed(0, attempt=5, error="no recording")[0]
    summary = replaying(tmp_path / "b", attempts, tmp_path / "a")
    counts = {name: summary[name] for name in ("requests", "same", "other", "unrecorded", "unused")}
    assert counts == {"requests": 4, "same": 2, "other": 1, "unrecorded": 1, "unused": 1}
    (difference,) = summary["first"]
    assert difference["place"] == "session 1, round 1, agent 2, attempt 1"
    assert difference["what"] == "message 1 (system)"
    assert (difference["left"], difference["right"]) == ("the rules", "other rules")
    assert summary["problem"] == ""


def test_a_replay_of_a_run_that_has_gone(tmp_path: Path) -> None:
    summary = replaying(tmp_path / "b", ATTEMPTS, tmp_path / "gone")
    assert "no run is here" in summary["problem"]
    assert summary["other"] is None


def test_other_runs_replay_nothing(tmp_path: Path) -> None:
    directory = talked(tmp_path / "a")
    assert replay_summary(directory, read_manifest(directory.path)) is None
