"""Agents of a user's class whose `async def act` awaits `asyncio.sleep`, measured."""

from __future__ import annotations

import time
from typing import Any

from agentsim.bench import meter
from agentsim.bench.agents import Sleeper
from agentsim.bench.meter import Phases
from agentsim.cluster import Cluster

_START_LIMIT_S = 60.0


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Make agents on a cluster and call them all; `dummy` says what the settings are.

    Nothing is written to disk: a user's program does that itself.
    """
    phases = Phases()
    memory: dict[str, dict[str, int]] = {}

    def end(name: str) -> None:
        phases.end(name)
        if settings["memory"]:
            memory[name] = meter.memory()
            phases.go_on()

    rounds_s = []
    with meter.watching(settings["memory"]) as sampler:
        with Cluster.local(workers=settings["workers"], modules=[Sleeper.__module__]) as cluster:
            meter.wait_until_quiet(_START_LIMIT_S)
            end("startup")
            group = cluster.group(Sleeper, count=settings["agents"])
            # Workers make their agents in order: when the last of each is there, all are.
            lasts = [
                group[len(group) * (i + 1) // cluster.workers - 1] for i in range(cluster.workers)
            ]
            assert all(placeholder.result() for placeholder in [agent.here() for agent in lasts])
            end("create")
            for _ in range(settings["rounds"]):
                began_s = time.monotonic()
                thought = group(settings["think_s"], settings["jitter_s"]).result()
                assert len(thought) == settings["agents"]
                rounds_s.append(time.monotonic() - began_s)
            end("rounds")
        phases.end("end")
    return {
        "parts": phases.parts,
        "rounds_s": rounds_s,
        "memory": {**memory, "most": sampler.most},
        "disk_bytes": 0,
    }
