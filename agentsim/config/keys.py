"""Findings about keys: missing ones, unknown ones, and those that are close to an absent one."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic.fields import FieldInfo

from agentsim.config.files import shown
from agentsim.config.masking import is_secret
from agentsim.config.tree import Mapping, Node, Path, find, key_place, place
from agentsim.config.words import close, name_of, one_of_keys, suggestion
from agentsim.errors import Finding

Fields = dict[str, FieldInfo | None]
"""The keys that may stand in a map; None: one of several that say what the map is."""


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A key that is close to one that is absent.

    Attributes:
        path: where it stands.
        meant: the absent key.
        finding: what is said about both.
    """

    path: Path
    meant: str
    finding: Finding


def near_miss(path: Path, fields: Fields, node: Node) -> NearMiss | None:
    """Whether an unknown key was meant to be one that is absent."""
    parent, key = find(node, *path[:-1]), str(path[-1])
    meant = close(key, fields)
    if not meant or key in fields or not isinstance(parent, Mapping) or meant in parent.entries:
        return None
    field = fields[meant]
    required = field.is_required() if field else len(fields) == 1
    hint = f"did you mean `{meant}`?" + (" it is required and missing" if required else "")
    where = key_place(node, path) or parent.place
    expected = one_of_keys(fields, meant) if len(fields) > 1 else ""
    finding = where.finding("unknown-key", _unknown(path), expected, hint)
    return NearMiss(path, meant, finding)


def unknown_key(path: Path, fields: Fields, node: Node) -> Finding:
    """The finding for a key that does not exist."""
    key = str(path[-1])
    hint = suggestion(key, fields)
    if not hint and is_secret(key):
        hint = "a secret is never written in a file: `api_key_env` names the variable that holds it"
    where = key_place(node, path) or place(node, path)
    return where.finding("unknown-key", _unknown(path), one_of_keys(fields), hint)


def missing_key(path: Path, snippet: str, node: Node) -> Finding:
    """The finding for a key that is missing; it points at what lacks it."""
    parent = path[:-1]
    where = place(node, parent)
    example = f"for example {snippet}"
    if parent:
        message = f"{name_of(parent)} lacks the required key `{path[-1]}`"
        return where.finding("missing-key", message, example)
    message = f"the required key `{path[-1]}` is missing"
    return Finding("missing-key", message, where.document.name, 1, 1, expected=example)


def _unknown(path: Path) -> str:
    inside = f" in {name_of(path[:-1])}" if len(path) > 1 else ""
    return f"unknown key {shown(str(path[-1]), 60)}{inside}"
