"""Users' modules, looked at without running them: are they there, are they Python, is the function
in them."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentsim.config.files import display
from agentsim.config.tree import Node, Place, Sequence, document, find, given, place, text_at
from agentsim.config.tree import Path as TreePath
from agentsim.config.words import suggestion
from agentsim.errors import Finding

GAME_KEYS = ("game", "prompt", "memory", "replies", "compare")
"""Keys of a scenario that has a game, which mean nothing to a workflow."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module's source.

    Attributes:
        path: its file; None for one without Python source.
        tree: None if it is not Python.
        findings: what is wrong.
    """

    path: Path | None
    tree: ast.Module | None
    findings: tuple[Finding, ...] = ()


def of_workflow(node: Node, folder: Path) -> tuple[list[Finding], dict[str, str]]:
    """What is wrong with the modules that a scenario names, and their sources by absolute path.

    Args:
        node: the scenario's tree.
        folder: the scenario's; modules in it are found first.
    """
    findings: list[Finding] = []
    sources: dict[str, str] = {}
    for path, name, function in _named(node):
        module = _module(name, folder, place(node, path))
        findings += module.findings
        if module.path is not None:
            sources[os.path.realpath(module.path)] = module.path.read_text("utf-8", "replace")
        if module.tree is not None and function:
            findings += _function(module, name, function, place(node, path))
    return findings, sources


def excluded(node: Node) -> Iterator[Finding]:
    """Keys of a game beside a workflow."""
    for key in GAME_KEYS:
        if not given(node, key):
            continue
        where = place(node, (key,))
        beside = place(node, ("workflow",)).related("the function that is run instead")
        what = "a scenario has a game or a workflow" if key == "game" else "it is for games"
        yield where.finding(
            "contradiction",
            f"{key}: {what}, and this scenario has a workflow",
            hint="what the function should know goes into `parameters`",
            related=(beside,),
        )


def _named(node: Node) -> Iterator[tuple[TreePath, str, str]]:
    """(where, module, function) of all that a scenario names; no function for further modules."""
    name, _, function = (text_at(node, "workflow") or "").partition(":")
    if name and function:
        yield ("workflow",), name, function
    further = find(node, "modules")
    for index in range(len(further.items) if isinstance(further, Sequence) else 0):
        if other := text_at(node, "modules", index):
            yield ("modules", index), other, ""


def _module(name: str, folder: Path, where: Place) -> Module:
    path, exists = _source_of(name, folder)
    if not exists:
        near = suggestion(name, sorted(file.stem for file in folder.glob("*.py")))
        return Module(
            None,
            None,
            (
                where.finding(
                    "unreadable-file",
                    f"there is no module `{name}`",
                    f"`{name.replace('.', '/')}.py` beside the scenario, or an installed module",
                    near,
                ),
            ),
        )
    if path is None:
        return Module(None, None)
    text = path.read_text("utf-8", "replace")
    try:
        return Module(path, ast.parse(text, str(path)))
    except (SyntaxError, ValueError) as error:
        return Module(path, None, (_not_python(path, text, error, where),))


def _source_of(name: str, folder: Path) -> tuple[Path | None, bool]:
    """A module's file, and whether there is such a module at all."""
    stem = folder.joinpath(*name.split("."))
    for path in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
        if path.is_file():
            return path, True
    top, _, rest = name.partition(".")
    try:
        # A package is not imported to look for what is in it: that would run its code.
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None, False
    if spec is None:
        return None, False
    for part in rest.split(".") if rest else ():
        within = list(spec.submodule_search_locations or ())
        spec = importlib.machinery.PathFinder.find_spec(part, within)
        if spec is None:
            return None, False
    origin = spec.origin
    return (Path(origin) if origin and origin.endswith(".py") else None), True


def _not_python(path: Path, text: str, error: SyntaxError | ValueError, where: Place) -> Finding:
    if not isinstance(error, SyntaxError) or not error.lineno:
        return where.finding("bad-value", f"`{_shown(path)}` is not Python: {error}")
    line = error.lineno - 1
    column = max((error.offset or 1) - 1, 0)
    there = Place(document(_shown(path), text), line, column)
    return where.finding(
        "bad-value",
        f"`{_shown(path)}` is not Python: line {error.lineno}: {error.msg}",
        related=(there.related(error.msg),),
    )


def _function(module: Module, name: str, function: str, where: Place) -> list[Finding]:
    """Whether a module has a plain function of this name at its top."""
    assert module.tree is not None
    assert module.path is not None
    defined = {item.name: item for item in module.tree.body if isinstance(item, ast.FunctionDef)}
    coroutines = {item.name for item in module.tree.body if isinstance(item, ast.AsyncFunctionDef)}
    if function in coroutines:
        problem = (
            f"`{function}` of `{_shown(module.path)}` is async; a workflow is a plain function"
        )
        help = "a plain function: its thread may wait, by `.result()`"
        return [where.finding("bad-value", problem, help)]
    if function in defined:
        arguments = defined[function].args
        least = len(arguments.posonlyargs) + len(arguments.args)
        if least == 0 and arguments.vararg is None:
            problem = f"`{function}` of `{_shown(module.path)}` takes no argument"
            return [where.finding("bad-value", problem, f"def {function}(run): …")]
        return []
    if function in _bound(module.tree):
        return []
    names = sorted(item for item in defined if not item.startswith("_"))
    problem = f"module `{name}` has no function `{function}`"
    expected = f"one of: {', '.join(names[:6])}" if names else f"def {function}(run): …"
    return [where.finding("unknown-value", problem, expected, suggestion(function, names))]


def _bound(tree: ast.Module) -> set[str]:
    """Names that are imported or assigned at the top of a module."""
    names: set[str] = set()
    for item in ast.walk(tree):
        if isinstance(item, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in item.names}
            if any(alias.name == "*" for alias in item.names):
                names.add("*")
        elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            names.add(item.id)
    return names


def _shown(path: Path) -> str:
    """A file as the current directory sees it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else display("", relative)
