"""Runs whose replies are given again: what a scenario with `backend: replay` names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agentsim.config.files import Unreadable, opened, shown
from agentsim.config.models import Replay
from agentsim.config.scenario import Scenario
from agentsim.config.tree import Node, beside, place
from agentsim.errors import Finding, UserError

_EXPECTED = "the directory of a run in which a language model has answered"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run that has finished, as its manifest and summary describe it.

    Attributes:
        path: its directory, absolute.
        run_id: tells runs apart.
        model: what its tables call the model that answered.
        format: how its replies were asked for and read.
        agents, sessions, rounds: how many it has.
    """

    path: Path
    run_id: str
    model: str
    format: Literal["json", "text"]
    agents: int
    sessions: int
    rounds: int


def read_recorded(path: str, name: str) -> RecordedRun:
    """What a run's directory says of it; no reply is read.

    Args:
        path: the directory.
        name: how findings call it.

    Raises:
        Unreadable: there is no such run, it has not finished, or no language model answered in it.
    """
    manifest = _read(path, name, "manifest.json")
    scenario = manifest.get("scenario") or {}
    model = scenario.get("model") or {}
    replayed = manifest.get("replay") or {}
    format = manifest.get("reply_format")
    if "workflow" in scenario:
        raise _useless(name, "is the run of a program of its own, which cannot be replayed")
    state = (_read(path, name, "summary.json").get("run") or {}).get("state")
    if state != "finished":
        problem = f"has not finished ({state}), so replies are missing"
        raise _useless(name, problem, f"finish it first: agentsim resume {name}")
    if format not in ("json", "text"):
        backend = model.get("backend", "nobody")
        raise _useless(name, f"has no replies: {backend} played in it, not a language model")
    try:
        return RecordedRun(
            path=Path(os.path.realpath(path)),
            run_id=str(manifest["run_id"]),
            model=str(replayed.get("model") or model["name"]),
            format=format,
            agents=int(scenario["agents"]),
            sessions=int(scenario["sessions"]),
            rounds=int(scenario["rounds"]),
        )
    except (KeyError, TypeError, ValueError):
        raise _useless(name, "has a manifest that is not of this version") from None


def of_recorded(run: RecordedRun, scenario: Scenario, node: Node) -> list[Finding]:
    """Whether a run has the rounds of all agents that a scenario needs."""
    keys = ("agents", "sessions", "rounds")
    lacks = [key for key in keys if getattr(scenario, key) > getattr(run, key)]
    if not lacks:
        return []
    where = place(node, ("model", "run"))
    has = ", ".join(f"{getattr(run, key):,} {key}" for key in lacks)
    wants = ", ".join(f"{getattr(scenario, key):,}" for key in lacks)
    related = [
        there
        for key in lacks
        for there in beside(node, (key,), f"{key} {getattr(scenario, key):,}", where)
    ]
    return [
        where.finding(
            "contradiction",
            f"model.run: the run has {has}, the scenario needs {wants}",
            "no more than the run has: replies that were not given cannot be repeated",
            related=tuple(related),
        )
    ]


def recorded_run(model: Replay) -> RecordedRun:
    """The run that a checked scenario replays.

    Raises:
        UserError: it is not there any more, or not finished any more.
    """
    try:
        return read_recorded(model.run, model.run)
    except Unreadable as error:
        raise UserError(f"model.run: {error.finding.message}") from None


def with_run(scenario: Scenario, run: RecordedRun) -> Scenario:
    """The scenario with the run's absolute path, which means the same from everywhere."""
    assert isinstance(scenario.model, Replay)
    model = scenario.model.model_copy(update={"run": str(run.path)})
    return scenario.model_copy(update={"model": model})


def _read(path: str, name: str, file: str) -> Mapping[str, Any]:
    """A JSON object in the directory."""
    if not Path(path).is_dir():
        with opened(path, name):  # says why, where it cannot be opened
            pass
        raise _useless(name, "is a file")
    inside = Path(path, file)
    if not inside.is_file():
        if file == "summary.json":
            raise _useless(
                name,
                "has not finished: it has no summary.json",
                f"when no process writes it any more: agentsim resume {name}",
            )
        raise _useless(name, f"is not a run's directory: it has no {file}")
    with opened(str(inside), f"{name}/{file}") as content:
        try:
            data = json.loads(content.read())
        except ValueError:
            data = None
    if not isinstance(data, dict):
        raise _useless(name, f"has a {file} that is no JSON object")
    return data


def _useless(name: str, problem: str, hint: str = "") -> Unreadable:
    finding = Finding("bad-value", f"{shown(name)} {problem}", name, expected=_EXPECTED, hint=hint)
    return Unreadable(finding, inside=False)
