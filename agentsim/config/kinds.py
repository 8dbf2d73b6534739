"""Tells the kinds of files apart, for one that stands where another kind belongs."""

from __future__ import annotations

from pydantic import BaseModel

from agentsim.config.hostfile import Hostfile
from agentsim.config.population import Population
from agentsim.config.scenario import Scenario
from agentsim.config.tree import Mapping, Place, Sequence
from agentsim.errors import Finding

MODELS: dict[str, type[BaseModel]] = {
    "scenario": Scenario,
    "population": Population,
    "hostfile": Hostfile,
}
"""The model of each kind of file."""
_NAMES = {"scenario": "a scenario", "population": "a population", "hostfile": "a hostfile"}


def misplaced(root: Mapping, wanted: str, named: Place | None) -> Finding | None:
    """The finding for a file that has keys of another kind and none of its own.

    Args:
        root: what the file holds.
        wanted: the kind that belongs here.
        named: where another file or a flag names it; None for what the user named first.
    """
    firsts = {kind: _first(root, kind) for kind in MODELS}
    kind, first = next(((kind, key) for kind, key in firsts.items() if key), (wanted, None))
    if firsts[wanted] or first is None:
        return None
    message = f"`{first.document.name}` is {_NAMES[kind]}, not {_NAMES[wanted]}"
    if named is None and wanted != "scenario":
        return first.finding("wrong-type", message, _NAMES[wanted])
    if named is None:
        key = {"population": "population", "hostfile": "hosts"}[kind]
        hint = f"a scenario names it: `{key}: PATH`"
        return first.finding("wrong-type", message, "a scenario", hint)
    related = (first.related(f"a key of {_NAMES[kind]}"),)
    return named.finding("wrong-type", message, f"the path of {_NAMES[wanted]}", related=related)


def _first(root: Mapping, kind: str) -> Place | None:
    """The first key that this kind of file has."""
    for key, entry in root.entries.items():
        # A list of hosts makes a hostfile; a scenario has the path of one.
        listed = kind == "scenario" and key == "hosts" and isinstance(entry.value, Sequence)
        if key in MODELS[kind].model_fields and not listed:
            return entry.key
    return None
