"""What the design of the files has and this version does not serve yet.

Such a key or value is a finding of its own and is then left out, so that it brings no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agentsim.config.tree import (
    Mapping,
    Node,
    Path,
    Scalar,
    child,
    find,
    key_place,
    place,
    text_at,
    without,
)
from agentsim.config.words import name_of
from agentsim.errors import Finding


@dataclass(frozen=True, slots=True)
class Unserved:
    """One thing that is not served.

    Attributes:
        path: where it stands.
        drop: what is left out because of it; nothing below or directly around it is checked.
        value: the word that is not served; empty when the key is not.
        instead: what is.
    """

    path: Path
    drop: Path
    value: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of a tree.

    Attributes:
        node: the tree without what is not served.
        findings: one for each thing that is not served.
        dropped: paths that were left out because of a finding.
    """

    node: Node
    findings: tuple[Finding, ...]
    dropped: tuple[Path, ...]


def scenario(node: Node) -> Kept:
    """Sort out a scenario."""
    # An empty sweep asks for nothing; what is in one was set before.
    return _kept(node, [*_UNSET, ("sweep",)], _of_scenario(node))


def population(node: Node) -> Kept:
    """Sort out a population file."""
    return _kept(node, (("where",),), _of_population(node))


def hostfile(node: Node) -> Kept:
    """Sort out a hostfile."""
    return _kept(node, (), _of_hostfile(node))


_UNSET: tuple[Path, ...] = (("limits", "cost_usd"),)
_SCRIPTED = "replay, cognitive_hierarchy, level_k, random, dummy"
_MADE = "llama_cpp or openai; population: RUN/personas.parquet takes the personas of a run"


def _of_scenario(node: Node) -> Iterator[Unserved]:
    for path in _UNSET:
        if _asked(find(node, *path)):
            yield Unserved(path, path)
    mixed = [key for key in ("mixture", "by") if _asked(find(node, "model", key))]
    backend = text_at(node, "model", "backend")
    if mixed:
        yield Unserved(("model", mixed[0]), ("model",))
    elif backend == "vllm":
        instead = f"one of: llama_cpp, openai, {_SCRIPTED}"
        yield Unserved(("model", "backend"), ("model",), backend, instead)
    elif backend == "replay" and _asked(find(node, "workflow")):
        yield Unserved(("model", "backend"), ("model",), backend, "one of: llama_cpp, openai")
    if text_at(node, "model", "sampling") == "pooled":
        path = ("model", "sampling")
        yield Unserved(path, path, "pooled", "per_agent")
    prompt = find(node, "prompt")
    if isinstance(prompt, Mapping) and prompt.entries.keys() & {"system", "user"}:
        yield Unserved(("prompt",), ("prompt",), "{system, user}")


def _of_population(node: Node) -> Iterator[Unserved]:
    if _asked(child(node, "where")):
        yield Unserved(("where",), ("where",))
    attributes = find(node, "attributes")
    for name in attributes.entries if isinstance(attributes, Mapping) else ():
        for key in ("given", "file"):
            if find(node, "attributes", name, key) is not None:
                yield Unserved(("attributes", name, key), ("attributes", name))
                break
    backend = text_at(node, "persona", "model", "backend")
    if backend in ("vllm", "replay"):
        path = ("persona", "model")
        instead = _MADE if backend == "replay" else "one of: llama_cpp, openai"
        yield Unserved((*path, "backend"), path, backend, instead)


def _of_hostfile(node: Node) -> Iterator[Unserved]:
    launcher = text_at(node, "launcher")
    if launcher in ("slurm", "ray"):
        yield Unserved(("launcher",), ("launcher",), launcher, "one of: local, ssh")


def _asked(node: Node | None) -> bool:
    """Whether a value asks for something: null and an empty map do not."""
    if isinstance(node, Scalar):
        return node.value is not None
    if isinstance(node, Mapping):
        return bool(node.entries)
    return node is not None


def _kept(node: Node, unset: Iterable[Path], unserved: Iterable[Unserved]) -> Kept:
    findings, dropped, kept = [], [], node
    for item in unserved:
        where = place(node, item.path) if item.value else key_place(node, item.path)
        named = f"{name_of(item.path)}: {item.value}" if item.value else name_of(item.path)
        message = f"`{named}` is not served by this version"
        expected = item.instead
        findings.append((where or place(node, item.path)).finding("not-served", message, expected))
        dropped.append(item.drop)
        kept = without(kept, item.drop)
    for path in unset:
        kept = without(kept, path)
    return Kept(kept, tuple(findings), tuple(dropped))
