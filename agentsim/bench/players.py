"""One run of players of the `dummy` model, measured: the whole pipeline, rows in Parquet."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import uvloop

from agentsim.bench import meter
from agentsim.bench.meter import Phases
from agentsim.config import load
from agentsim.games import GAMES
from agentsim.orchestrator.observer import Silent
from agentsim.results import read_summary
from agentsim.rpc.messages import Settle
from agentsim.run import run

_CREATION_LIMIT_S = 60.0


class _Watch(Silent):
    """Sees the parts of a run begin and end."""

    def __init__(self, phases: Phases, *, memory: bool) -> None:
        self.phases = phases
        self.memory: dict[str, dict[str, int]] = {}
        self.rounds_s: list[float] = []
        self._looks = memory

    def stage(self, name: str) -> None:
        if name.startswith("placing"):
            meter.wait_until_quiet(_CREATION_LIMIT_S)
            self._end("startup")
        elif name == "summing up":
            self._end("rounds")

    def asked(self, session: int, round: int, n: int) -> None:
        if "create" not in self.phases.parts:
            # The agents are on their way; the workers are to be done with them.
            meter.wait_until_quiet(_CREATION_LIMIT_S)
            self._end("create")

    def settled(self, settle: Settle) -> None:
        self.rounds_s.append(settle.wall_s)

    def _end(self, name: str) -> None:
        self.phases.end(name)
        if self._looks:
            self.memory[name] = meter.memory()
            self.phases.go_on()


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Play a run in this process and tell what it cost; `dummy` says what the settings are."""
    phases = Phases()
    with tempfile.TemporaryDirectory(prefix="agentsim-bench-") as name:
        folder = Path(name)
        file = folder / "scenario.yaml"
        file.write_text(json.dumps(_scenario(settings)))  # JSON is YAML
        path = Path(settings["out"] or folder / "run")
        loaded = load(file, games=GAMES, workers=settings["workers"])
        with meter.watching(settings["memory"]) as sampler:
            watch = _Watch(phases, memory=settings["memory"])
            uvloop.run(run(loaded, path, watch, "agentsim bench dummy"))
        phases.end("end")
        settled = read_summary(path)["actions"]["settled"]
        assert settled == settings["agents"] * settings["rounds"]
        return {
            "parts": phases.parts,
            "rounds_s": watch.rounds_s,
            "memory": {**watch.memory, "most": sampler.most},
            "disk_bytes": sum(p.stat().st_size for p in path.rglob("*") if p.is_file()),
        }


def _scenario(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "bench-dummy",
        "agents": settings["agents"],
        "rounds": settings["rounds"],
        "seed": 1,
        "game": {"type": "guess_average"},
        "model": {
            "backend": "dummy",
            "think_s": settings["think_s"],
            "jitter_s": settings["jitter_s"],
            "text_bytes": settings["text_bytes"],
        },
    }
