"""Makes a sweep's directory, and reads again what a sweep was asked for."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentsim import personas
from agentsim.config import Loaded, LoadedCell, LoadedSweep, LoadedWorkflow, Override, load_runs
from agentsim.config.models import LANGUAGE_MODELS, AnsweringModel
from agentsim.config.sweep import KEY
from agentsim.errors import UserError
from agentsim.games import GAMES
from agentsim.results.sweep import Asked, Cell, Sweep, SweepDirectory, directory_name, make_sweep

_SHOWN = 6


def begin(loaded: LoadedSweep, path: Path, asked: Asked, command: str = "") -> SweepDirectory:
    """Make the directory of a new sweep; nothing is played yet.

    Args:
        loaded: its cells.
        path: the directory; must not exist.
        asked: how the scenario was read.
        command: what the user asked for.

    Raises:
        UserError: the directory exists, or a package, a model file or a key is missing.
        ResultsError: it cannot be written.
    """
    directory = SweepDirectory(path)
    if path.exists():
        raise UserError(f"{path}: exists already; a sweep's directory is never overwritten")
    api_keys(loaded)
    cells = [record(cell) for cell in loaded.cells]
    directory.create(make_sweep(loaded.name, cells, asked, loaded.files, command))
    return directory


@dataclass(frozen=True, slots=True)
class Changes:
    """What may be other than before when a sweep goes on; it changes no result.

    Attributes:
        limits: dotted key, YAML text and flag of each.
        hosts: a hostfile.
        workers: for each host.
    """

    limits: tuple[Override, ...] = ()
    hosts: Path | None = None
    workers: int | None = None


_NO_CHANGES = Changes()


def read_again(
    directory: SweepDirectory, sweep: Sweep, changes: Changes = _NO_CHANGES
) -> LoadedSweep:
    """What a sweep was asked for: its files are taken as they were then.

    Raises:
        UserError: it cannot be read any more as it was, programs have changed, or something is to
            be changed that may not.
        ConfigError: what is to be changed is wrong.
    """
    asked = sweep.asked
    for key, _, flag in changes.limits:
        if not key.startswith("limits."):
            raise UserError(
                f"{flag} {key}: a sweep goes on with the scenario that it was begun with; only its "
                "limits can be others, e.g. --set limits.tokens=2000000"
            )
    hosts = None if asked.hosts is None else Path(asked.hosts)
    if changes.hosts is not None:
        hosts = changes.hosts.absolute()
    stored = {name: entry["text"] for name, entry in sweep.files.items()}
    folder = Path(asked.folder)
    with contextlib.chdir(folder) if folder.is_dir() else contextlib.nullcontext():
        loaded = load_runs(
            asked.file,
            games=GAMES,
            overrides=(*asked.overrides, *changes.limits),
            hosts=hosts,
            workers=asked.workers if changes.workers is None else changes.workers,
            stored=stored,
        )
    if not isinstance(loaded, LoadedSweep):
        raise UserError(f"{directory.path}: what was asked for is no sweep")
    refuse_other(directory, sweep, loaded)
    changed = [name for name, text in loaded.files.items() if stored.get(name, text) != text]
    if changed:
        raise UserError(
            f"{directory.path}: a program has changed since the sweep began: {changed[0]}; put it "
            "back to go on, or begin a new sweep"
        )
    return loaded


def refuse_other(directory: SweepDirectory, sweep: Sweep, loaded: LoadedSweep) -> None:
    """Refuse to go on with other cells than a sweep began with.

    Raises:
        UserError: they differ; the message says where.
    """
    now = [record(cell) for cell in loaded.cells]
    problems = list(_differences(sweep.cells, now))
    if problems:
        more = len(problems) - _SHOWN
        shown = [*problems[:_SHOWN], *([f"and {more} more"] if more > 0 else [])]
        raise UserError(
            f"{directory.path}: was begun with another scenario, and a sweep goes on with its "
            "own:\n  " + "\n  ".join(shown) + "\nBegin a new sweep for the other one"
        )


def record(cell: LoadedCell) -> Cell:
    """A cell as it stands in sweep.json before it is played."""
    loaded = cell.loaded
    return Cell(
        number=cell.number,
        name=directory_name(cell.number, {item.key: item.written for item in cell.settings}),
        words=cell.words,
        set={item.key: item.value for item in cell.settings},
        scenario=_scenario(loaded),
        people=_people(loaded),
    )


def command_of(asked: Asked, cell: LoadedCell) -> str:
    """What plays one cell alone, as a shell would take it."""
    words = ["agentsim", "run", asked.file]
    for key, text, flag in asked.overrides:
        words += ["--set", f"{key}={text}"] if flag == "--set" else [flag, text]
    if asked.hosts is not None:
        words += ["--hosts", asked.hosts]
    if asked.workers is not None:
        words += ["--workers", str(asked.workers)]
    words += ["--set", f"{KEY}={{}}"]
    for setting in cell.settings:
        words += ["--set", f"{setting.key}={_as_yaml(setting.value)}"]
    return shlex.join(words)


def _as_yaml(value: Any) -> str:
    """A value as YAML that is read as the same value: JSON, but for plain words."""
    plain = isinstance(value, str) and re.fullmatch(r"[a-z]\w*", value)
    return str(value) if plain and value not in _NO_WORDS else json.dumps(value)


_NO_WORDS = ("true", "false", "null")


def api_keys(loaded: LoadedSweep) -> dict[str, str]:
    """The keys of all endpoints of all cells, by the names of their variables.

    Raises:
        UserError: a package, a model file or a key is missing.
    """
    models: dict[str, AnsweringModel] = {}
    for cell in loaded.cells:
        model, writer = cell.loaded.scenario.model, personas.writer_of(cell.loaded)
        if isinstance(model, LANGUAGE_MODELS):
            models[model.model_dump_json()] = model
        if writer is not None:
            models[writer.model.model_dump_json()] = writer.model
    return personas.api_keys(*models.values())


def _scenario(loaded: Loaded | LoadedWorkflow) -> dict[str, Any]:
    """The scenario as data, with its game."""
    if isinstance(loaded, Loaded):
        whole = loaded.scenario.model_copy(update={"game": loaded.game})
        return whole.model_dump(mode="json")
    return loaded.scenario.model_dump(mode="json")


def _people(loaded: Loaded | LoadedWorkflow) -> str:
    if loaded.made is not None:
        text = str(loaded.made.path)
    elif loaded.population is not None:
        text = loaded.population.model_dump_json()
    else:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _differences(then: tuple[Cell, ...], now: list[Cell]) -> Iterator[str]:
    if len(then) != len(now):
        yield f"it has {len(then):,} cells, the scenario has {len(now):,}"
        return
    for old, new in zip(then, now, strict=True):
        before, after = _flat(old.scenario), _flat(new.scenario)
        for key in dict.fromkeys((*before, *after)):
            if key.partition(".")[0] not in _FREE and before.get(key) != after.get(key):
                yield f"cell {old.number}: {key} was {before.get(key)}, is {after.get(key)}"
        if old.people != new.people:
            yield f"cell {old.number}: the population is another one"


# Where it is played, what ends it early and what it is called for readers may change; whether the
# people are others is compared by what is in their file.
_FREE = frozenset(("hosts", "limits", "description", "population"))


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values by dotted key."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat
