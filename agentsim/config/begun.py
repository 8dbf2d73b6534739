"""The files of a run that was begun before, from what its manifest says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from agentsim.config.hostfile import Hostfile
from agentsim.config.loaded import Loaded
from agentsim.config.loader import load_hostfile
from agentsim.config.made import read_made
from agentsim.config.population import Population
from agentsim.config.scenario import Scenario
from agentsim.errors import UserError

_FREE = ("limits", "hosts")
"""Keys of a scenario that change no result, so that a run may go on with others."""


def load_recorded(
    manifest: Mapping[str, Any],
    name: str,
    *,
    games: Mapping[str, type[BaseModel]],
    limits: Iterable[tuple[str, str, str]] = (),
    hosts: Path | None = None,
    workers: int | None = None,
) -> Loaded:
    """The files of a run as its manifest has them.

    Args:
        manifest: the contents of manifest.json.
        name: how errors call the run.
        games: the models of the `game:` part by `type`.
        limits: other limits than the scenario's: dotted key, YAML text, flag.
        hosts: hostfile to take instead.
        workers: workers for each host instead of the hostfile's.

    Raises:
        UserError: the manifest is of a user's program, or this version cannot read it.
        ConfigError: the hostfile is wrong.
    """
    recorded = manifest.get("scenario") or {}
    if "workflow" in recorded:
        raise UserError(
            f"{name}: is the run of a program, and what its agents were about is not recorded; "
            "such a run cannot go on: start it again"
        )
    try:
        scenario = _parse(Scenario, _limited(recorded, limits))
        game = _parse(games[scenario.game["type"]], scenario.game)
        population = manifest.get("population")
        people = None if population is None else _parse(Population, population)
        hostfile = load_hostfile(hosts) if hosts else _parse(Hostfile, manifest["hosts"])
    except (ValidationError, KeyError, TypeError) as error:
        raise UserError(f"{name}: this version cannot go on with its scenario: {error}") from error
    if workers is not None:
        own = [host.model_copy(update={"workers": workers}) for host in hostfile.hosts]
        hostfile = hostfile.model_copy(update={"hosts": own})
    made = manifest.get("made")
    return Loaded(
        scenario,
        game,
        people,
        hostfile,
        {path: file["text"] for path, file in manifest.get("files", {}).items()},
        read_made(made, made) if made and Path(made).exists() else None,
    )


def differences(manifest: Mapping[str, Any], loaded: Loaded) -> list[str]:
    """Where a scenario differs from the one that a run was begun with, one line each.

    Hosts and limits may differ: they change no result.
    """
    scenario = loaded.scenario.model_copy(update={"game": loaded.game}).model_dump(mode="json")
    people = loaded.population.model_dump(mode="json") if loaded.population else None
    there = {**(manifest.get("scenario") or {}), "population": manifest.get("population")}
    here = {**scenario, "population": people}
    for key in _FREE:
        there.pop(key, None)
        here.pop(key, None)
    return list(_unequal("", there, json.loads(json.dumps(here))))


def _unequal(path: str, there: Any, here: Any) -> Iterator[str]:
    if isinstance(there, dict) and isinstance(here, dict):
        for key in sorted(there.keys() | here.keys()):
            yield from _unequal(f"{path}.{key}" if path else key, there.get(key), here.get(key))
    elif there != here:
        yield f"{path}: {json.dumps(there)} in the run, {json.dumps(here)} now"


def _limited(scenario: Mapping[str, Any], limits: Iterable[tuple[str, str, str]]) -> dict[str, Any]:
    """The scenario with other limits."""
    changed = dict(scenario.get("limits") or {})
    for key, text, flag in limits:
        top, _, name = key.partition(".")
        if top != "limits" or not name:
            raise UserError(
                f"{flag} {key}: a run goes on with the scenario that it was begun with; only its "
                "limits can be others, e.g. --set limits.tokens=2000000"
            )
        changed[name] = yaml.safe_load(text)
    return {**scenario, "limits": changed}


def _parse(model: type[Any], data: Any) -> Any:
    return model.model_validate_json(json.dumps(data), strict=True)
