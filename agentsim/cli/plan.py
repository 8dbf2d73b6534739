"""`agentsim plan`: who would sit where and what a run would take."""

from __future__ import annotations

import json as json_
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentsim.cli.failures import ErrorFormat, told_as
from agentsim.cli.flags import (
    Agents,
    Cluster,
    Errors,
    File,
    Hosts,
    Rounds,
    Seed,
    Sessions,
    Set,
    Workers,
    hosts_of,
    overrides,
)

if TYPE_CHECKING:
    from agentsim.config import Hostfile, Loaded, LoadedSweep, LoadedWorkflow
    from agentsim.plan.forecast import Forecast

_MOST_CELLS = 50


def plan(
    file: File,
    agents: Agents = None,
    sessions: Sessions = None,
    rounds: Rounds = None,
    seed: Seed = None,
    hosts: Hosts = None,
    cluster: Cluster = None,
    workers: Workers = None,
    set_: Set = None,
    look: Annotated[
        bool,
        typer.Option(
            "--look", help="Connect to hosts of the ssh launcher, and say what they lack."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    error_format: Errors = ErrorFormat.TEXT,
) -> None:
    """Say who would sit where, what a run would take and what is missing; nothing is started.

    Exits with 1 when something is missing.
    """
    from agentsim.config import LoadedSweep, load_runs
    from agentsim.games import GAMES

    flags = {"agents": agents, "sessions": sessions, "rounds": rounds, "seed": seed}
    with told_as(error_format):
        changed = overrides(flags, set_)
        place = hosts_of(hosts, cluster)
        loaded = load_runs(file, games=GAMES, overrides=changed, hosts=place, workers=workers)
        first = loaded.cells[0].loaded if isinstance(loaded, LoadedSweep) else loaded
        far = first.hostfile.launcher == "ssh" and first.hostfile.cluster is None
        lacks = _looked(first.hostfile) if look and far else []
    data, text = _sweep(loaded) if isinstance(loaded, LoadedSweep) else _one(loaded)
    data["missing"] += lacks
    if far and not look:
        data["doubts"].append("what the hosts lack is seen with --look, and before each run")
    text += _ends(data["missing"], data["doubts"])
    sys.stdout.write(json_.dumps(data, indent=2, ensure_ascii=False) + "\n" if json else text)
    sys.exit(1 if data["missing"] else 0)


def _looked(hostfile: Hostfile) -> list[str]:
    """What is wrong with the hosts that ssh reaches; nothing is left running there."""
    import asyncio

    from agentsim.launch.preflight import look

    return [
        f"{item.host.address}: {problem.what}"
        for item in asyncio.run(look(hostfile))
        for problem in item.problems
    ]


def _one(loaded: Loaded | LoadedWorkflow) -> tuple[dict[str, Any], str]:
    """The plan of one run: as data, and as text."""
    from agentsim.plan.forecast import forecast
    from agentsim.plan.missing import doubts, missing, weighed
    from agentsim.report.forecast import forecast_text

    coming = weighed(forecast(loaded))
    lacks, may = missing(loaded), list(doubts(coming, Path("runs")))
    data = {**coming.to_dict(), "missing": lacks, "doubts": may}
    return data, forecast_text(coming)


def _sweep(loaded: LoadedSweep) -> tuple[dict[str, Any], str]:
    """The plan of a sweep: all of its cells, and the first one in full."""
    from agentsim.plan.forecast import forecast
    from agentsim.plan.missing import doubts, missing, weighed
    from agentsim.report.forecast import forecast_text
    from agentsim.report.words import count
    from agentsim.sweep import people_key

    comings = list(
        _once([(people_key(one.loaded), weighed(forecast(one.loaded))) for one in loaded.cells])
    )
    lacks = list(dict.fromkeys(item for cell in loaded.cells for item in missing(cell.loaded)))
    may = list(dict.fromkeys(item for one in comings for item in doubts(one, Path("runs"))))
    actions = sum(one.actions or 0 for one in comings)
    lines = [f"{loaded.name}: {count(len(comings))} runs one after the other"]
    lines += [f"  {count(actions)} actions in all"] if actions else []
    for cell, coming in zip(loaded.cells[:_MOST_CELLS], comings, strict=False):
        lines.append(f"  {cell.number}  {cell.words}{_asked(coming)}")
    if len(comings) > _MOST_CELLS:
        lines.append(f"  ... and {len(comings) - _MOST_CELLS:,} more")
    text = "\n".join([*lines, "", "the first cell", ""])
    data = {
        "name": loaded.name,
        "actions": actions,
        "cells": [
            {"number": cell.number, "set": {s.key: s.value for s in cell.settings}, **one.to_dict()}
            for cell, one in zip(loaded.cells, comings, strict=True)
        ],
        "missing": lacks,
        "doubts": may,
    }
    return data, text + forecast_text(comings[0])


def _once(comings: list[tuple[object, Forecast]]) -> Iterator[Forecast]:
    """The plans of cells, of which those with the same people have them written once."""
    seen: set[object] = set()
    for key, coming in comings:
        if key in seen:
            models = tuple(model for model in coming.models if model.use != "personas")
            coming = replace(coming, models=models)
        seen.add(key)
        yield coming


def _asked(coming: Forecast) -> str:
    from agentsim.report.words import count

    most = sum(model.requests_most or 0 for model in coming.models)
    return f": at most {count(most)} requests" if most else ""


def _ends(lacks: list[str], may: list[str]) -> str:
    from agentsim.report.forecast import listed

    text = listed("missing", lacks) or "missing: nothing that can be seen from here\n"
    return text + listed("mind", may)
