"""`agentsim bench messages`: what calls of agents cost, without any work in them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from agentsim.bench import meter
from agentsim.bench.agents import Echo
from agentsim.bench.machine import machine
from agentsim.bench.programs import measured
from agentsim.bench.spread import spread
from agentsim.cluster import Cluster

KINDS = {
    "fan_out": "single calls, all made, then all read",
    "group_call": "one call on a group, an agent",
    "round_trip": "single calls, each read before the next",
}
_AGENTS = 1000
# A group call is so cheap that one is lost among the signs of life of the processes.
_GROUP_CALLS = 10


def bench_messages(
    *,
    calls: int,
    round_trips: int,
    workers: int,
    repeats: int,
    measured: Callable[[str, dict[str, Any]], dict[str, Any]] = measured,
) -> dict[str, Any]:
    """Measure, and say what a call costs; plain data, ready for JSON.

    Returns:
        calls, round_trips, workers, repeats, machine
        fan_out        single calls on agents in turn, all made and then all read
        group_call     a call on a group of as many agents; a call is one agent's
        round_trip     single calls, each read before the next is made
            each: cpu_us and wall_us of one call, medians, with _min and _max; CPU is that of all
            processes, and no import or start-up is in it

    Raises:
        RunError: it failed.
    """
    settings = {
        "calls": calls,
        "round_trips": round_trips,
        "workers": workers,
        "repeats": repeats,
    }
    found = measured("messages", settings)
    kinds = {
        name: {
            **spread("cpu_us", [cpu_s * 1e6 for _, cpu_s in found[name]]),
            **spread("wall_us", [wall_s * 1e6 for wall_s, _ in found[name]]),
        }
        for name in KINDS
    }
    return {**settings, **kinds, "machine": machine()}


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Wall and CPU seconds of one call, for each kind, as often as wanted."""
    calls, trips = settings["calls"], settings["round_trips"]
    with Cluster.local(workers=settings["workers"], modules=[Echo.__module__]) as cluster:
        some = list(cluster.group(Echo, count=_AGENTS))
        many = cluster.group(Echo, count=calls)

        def fan_out() -> None:
            placeholders = [some[i % _AGENTS].act(float(i)) for i in range(calls)]
            for placeholder in placeholders:
                placeholder.result()

        def group_calls() -> None:
            for _ in range(_GROUP_CALLS):
                many.act(1.0).result()

        def round_trip() -> None:
            for i in range(trips):
                some[i % _AGENTS].act(float(i)).result()

        kinds = {
            "fan_out": (fan_out, calls),
            "group_call": (group_calls, _GROUP_CALLS * calls),
            "round_trip": (round_trip, trips),
        }
        for work, _ in kinds.values():
            work()  # the first time is of another kind: agents are made, caches are empty
        return {
            name: [_cost(work, count) for _ in range(settings["repeats"])]
            for name, (work, count) in kinds.items()
        }


def _cost(work: Callable[[], None], count: int) -> tuple[float, float]:
    """Wall and CPU seconds for each of so many."""
    meter.wait_until_quiet(10.0)
    cpu_s, began_s = meter.cpu_s(), time.monotonic()
    work()
    wall_s = time.monotonic() - began_s
    meter.wait_until_quiet(10.0)
    return wall_s / count, (meter.cpu_s() - cpu_s) / count
