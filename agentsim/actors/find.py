"""Classes by their path, and the modules that hold them on their way to other machines."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from agentsim.actors.agent import Agent
from agentsim.errors import UserError


def find_agent(path: str, modules: frozenset[str]) -> type[Agent]:
    """The class of a path `module:qualname`.

    Raises:
        LookupError: its module is not one of the run's, or it is no agent.
    """
    name, _, qualname = path.partition(":")
    if name not in modules:
        raise LookupError(f"module {name} is not one of the run's modules")
    found: object = importlib.import_module(name)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, Agent)):
        raise LookupError(f"{path} is no Agent or Environment")
    if found.__module__ not in modules:
        raise LookupError(f"{path} is of module {found.__module__}, which is none of the run's")
    return found


def sources_of(modules: Iterable[str]) -> dict[str, bytes]:
    """Source files of modules, by the name that they have below a folder on the import path.

    A module of a package brings the whole package. Modules of agentsim itself, and those that are
    installed beside it, are there already.

    Raises:
        UserError: a module has no Python source.
    """
    sources: dict[str, bytes] = {}
    for name in modules:
        top = name.partition(".")[0]
        if top == "agentsim":
            continue
        spec = importlib.util.find_spec(top)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            raise UserError(f"module {name} has no Python source that could be sent to workers")
        origin = Path(spec.origin)
        if "site-packages" in origin.parts:
            continue
        if spec.submodule_search_locations is None:
            sources[origin.name] = origin.read_bytes()
        else:
            for path in sorted(origin.parent.rglob("*.py")):
                sources[str(path.relative_to(origin.parent.parent))] = path.read_bytes()
    return sources


def unpack(sources: dict[str, bytes], folder: Path) -> None:
    """Write the modules' sources and make them importable, before anything else of that name.

    Raises:
        ValueError: a file would lie outside the folder.
    """
    root = folder.resolve()
    paths = {(root / name).resolve(): text for name, text in sources.items()}
    for path in paths:
        if not path.is_relative_to(root):
            raise ValueError(f"a module's file lies outside its folder: {path}")
    for path, text in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
    if sources:
        sys.path.insert(0, str(root))
        importlib.invalidate_caches()
