"""The parts that a run is made of, each checked, in the scenario and in the files that it names."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping as Games
from pathlib import Path

from pydantic import BaseModel, create_model

from agentsim.config import checks, served
from agentsim.config import overrides as flags
from agentsim.config.base import FileModel
from agentsim.config.check import Checked, check
from agentsim.config.hostfile import Hostfile
from agentsim.config.hosts import hostfile as read_hostfile
from agentsim.config.keys import missing_key, near_miss
from agentsim.config.made import SUFFIX, MadePersonas
from agentsim.config.population import Population
from agentsim.config.reading import Reading, named_file, named_here
from agentsim.config.recorded import RecordedRun
from agentsim.config.scenario import Scenario
from agentsim.config.served import Kept
from agentsim.config.shape import flow
from agentsim.config.translate import unknown_word
from agentsim.config.tree import Mapping, Node, Place, find, given, place, renamed, text_at
from agentsim.config.words import found


def scenario(
    reading: Reading, root: Node, games: Games[str, type[FileModel]]
) -> tuple[Checked[Scenario], BaseModel | None]:
    """The scenario itself, and its `game:` part, which has a model of its own."""
    kept = served.scenario(root)
    checked = check(Scenario, kept)
    reading.add(checked.findings)
    reading.add(checks.across(checked.node))
    return checked, _game(reading, checked.node, kept, games)


def _game(
    reading: Reading, root: Node, kept: Kept, games: Games[str, type[FileModel]]
) -> BaseModel | None:
    """Check the `game:` part against the model of its own type."""
    node = find(root, "game")
    if node is None:
        return None
    if not isinstance(node, Mapping):
        message = f"game must be a map, found {found(root, ('game',))}"
        example = Scenario.model_fields["game"].examples or [{}]
        where = place(root, ("game",))
        reading.add([where.finding("wrong-type", message, f"for example game: {flow(example[0])}")])
        return None
    if given(node, "type") is None:
        close = (near_miss(("game", key), {"type": None}, root) for key in node.entries)
        miss = next((miss for miss in close if miss), None)
        if miss is None:
            kind = next(iter(games), "…")
            reading.add([missing_key(("game", "type"), f"type: {kind}", root)])
            return None
        reading.add([miss.finding])
        root = renamed(root, miss.path, "type")
    kind = text_at(root, "game", "type") or ""
    if kind not in games:
        reading.add([unknown_word(("game", "type"), games, root)])
        return None
    return _part(reading, games[kind], root, kept)


@functools.cache
def _shell(model: type[FileModel]) -> type[FileModel]:
    """A scenario of nothing but the game, so that paths in it are the scenario's."""
    return create_model("_Shell", __base__=FileModel, game=(model, ...))


def _part(reading: Reading, model: type[FileModel], root: Node, kept: Kept) -> BaseModel | None:
    """Check the game against its model."""
    entry = root.entries["game"] if isinstance(root, Mapping) else None
    if entry is None:
        return None
    alone = Mapping({"game": entry}, root.place, flow=True)
    checked = check(_shell(model), Kept(alone, (), kept.dropped))
    reading.add(checked.findings)
    game: BaseModel | None = getattr(checked.value, "game", None)
    return game


def people(reading: Reading, root: Node | None) -> tuple[Population | None, MadePersonas | None]:
    """The population, and the file of personas if the scenario names one."""
    name = text_at(root, "population")
    if root is None or name is None:
        return None, None
    file, named = named_file(root, ("population",), name)
    if file.endswith(SUFFIX):
        made = reading.made(file, named)
        return (made.population if made else None), made
    tree = reading.tree(file, "population", named)
    if tree is None:
        return None, None
    checked = check(Population, served.population(tree))
    reading.add(named_here(checked.findings, named))
    return checked.value, None


def recorded(reading: Reading, root: Node | None) -> RecordedRun | None:
    """The run whose replies are given again, where the scenario names one."""
    name = text_at(root, "model", "run") if root is not None else None
    if root is None or name is None or text_at(root, "model", "backend") != "replay":
        return None
    return reading.recorded(*named_file(root, ("model", "run"), name))


def hostfile(
    reading: Reading, root: Node | None, hosts: Path | None, workers: int | None
) -> Hostfile | None:
    """Check the hostfile; without a scenario, the one that the command line names."""
    tree: Node | None = None
    named: Place | None = None
    name = text_at(root, "hosts") if root else os.fspath(hosts) if hosts else None
    if name is not None:
        file, named = (
            named_file(root, ("hosts",), name)
            if root
            else (name, flags.flag_place("--hosts", name))
        )
        tree = reading.tree(file, "hostfile", named)
        if tree is None:
            return None
    if workers is not None:
        tree = flags.set_workers(tree, workers)
    if tree is None:
        return None
    checked = read_hostfile(tree)
    reading.add(named_here(checked.findings, named))
    return checked.value
