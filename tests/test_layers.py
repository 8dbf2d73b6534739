"""A package imports only what stands before it in the floor table of docs/design.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = "agentsim"
BOTTOM = ["version"]  # not in the table: a constant that all may read
TOP = ["__main__"]
APART = frozenset({"worker", "node", "orchestrator"})  # meet on the wire
FAKES = "testing"  # may import anything, and nothing that ships imports it


def floors(design: str) -> list[str]:
    """Packages and modules in the order of the table, from the bottom."""
    table = design.partition("## Floors")[2].partition("\n\n`testing/`")[0]
    rows = [line.split("|") for line in table.splitlines() if re.match(r"\| \d", line)]
    return [name for row in rows for name in re.findall(r"`(\w+)/?`", row[2])]


def imports(path: Path, root: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of all that a module imports from the package, wherever it stands."""
    parts = path.relative_to(root).with_suffix("").parts
    within = parts[:-1]  # the package that relative imports start from
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = list(within[: len(within) - node.level + 1]) if node.level else []
            source = ".".join([*start, *([node.module] if node.module else [])])
            names = [f"{source}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == PACKAGE)


def violations(root: Path, order: list[str]) -> list[str]:
    """What breaks the table under `root`, which holds the package; one line each."""
    package = root / PACKAGE
    rank = {name: i for i, name in enumerate([*BOTTOM, *order, *TOP])}
    found = []
    for path in sorted(package.rglob("*.py")):
        own = path.relative_to(package).parts[0].removesuffix(".py")
        place = str(path.relative_to(root))
        if own == "__init__" or own == FAKES:
            continue  # `agentsim/__init__.py` is tested on its own
        if own not in rank:
            found.append(f"{place}: `{own}` is not in the table")
            continue
        for line, name in imports(path, root):
            target = ([*name.split("."), "__init__"])[1]
            if target == own:
                continue
            if target == FAKES:
                reason = "`testing` is for tests"
            elif target not in rank:
                reason = f"`{target}` is not in the table"
            elif own in APART and target in APART:
                reason = f"`{own}` and `{target}` meet on the wire alone"
            elif rank[target] > rank[own]:
                reason = f"`{target}` stands above `{own}`"
            else:
                continue
            found.append(f"{place}:{line}: {reason}")
    return found


def test_packages_import_only_what_stands_before_them() -> None:
    order = floors((ROOT / "docs" / "design.md").read_text(encoding="utf-8"))
    assert violations(ROOT, order) == []


def test_the_table_has_every_package_once() -> None:
    order = floors((ROOT / "docs" / "design.md").read_text(encoding="utf-8"))
    assert order[:2] == ["errors", "ids"]
    assert order[-1] == "cli"
    assert len(set(order)) == len(order)
    gone = [
        name
        for name in order
        if not (ROOT / PACKAGE / name / "__init__.py").exists()
        and not (ROOT / PACKAGE / f"{name}.py").exists()
    ]
    assert gone == []


def test_importing_the_package_imports_nothing_of_it() -> None:
    tree = ast.parse((ROOT / PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    at_once = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert {node.module for node in at_once if isinstance(node, ast.ImportFrom)} <= {
        "__future__",
        "typing",
        f"{PACKAGE}.version",
    }
    assert not [node for node in at_once if isinstance(node, ast.Import)]


ORDER = ["errors", "ids", "rpc", "results", "games", "node", "worker", "orchestrator", "cli"]

PLANTED = {
    "from a floor above": ("rpc/a.py", "from agentsim.games import x", "stands above"),
    "from the right": ("rpc/a.py", "from agentsim.results import x", "stands above"),
    "a plain import": ("ids.py", "import os, agentsim.rpc.codec", "stands above"),
    "from the package": ("ids.py", "from agentsim import rpc", "stands above"),
    "in a function": ("rpc/a.py", "def f():\n    import agentsim.cli", "stands above"),
    "for types only": ("rpc/a.py", "if T:\n    from agentsim.cli import x", "stands above"),
    "relative": ("rpc/deep/a.py", "from ...games import x", "stands above"),
    "relative, from the package": ("rpc/__init__.py", "from .. import games", "stands above"),
    "worker and node": ("worker/a.py", "from agentsim.node import x", "on the wire"),
    "node and worker": ("node/a.py", "from agentsim.worker import x", "on the wire"),
    "orchestrator and node": ("orchestrator/a.py", "import agentsim.node.b", "on the wire"),
    "orchestrator and worker": ("orchestrator/a.py", "from agentsim import worker", "on the wire"),
    "a fake": ("cli/a.py", "from agentsim.testing import Fake", "is for tests"),
    "the package's own names": ("cli/a.py", "from agentsim import load_run", "not in the table"),
    "a package of nowhere": ("utils/a.py", "", "`utils` is not in the table"),
}


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_violation_is_found(tmp_path: Path, case: str) -> None:
    name, source, reason = PLANTED[case]
    path = tmp_path / PACKAGE / name
    path.parent.mkdir(parents=True)
    path.write_text(source)
    (line,) = violations(tmp_path, ORDER)
    assert line.startswith(f"{PACKAGE}/{name}:")
    assert reason in line


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("cli/a.py", "import agentsim.rpc.codec\nfrom agentsim import errors, orchestrator"),
        ("results/a.py", "from agentsim.rpc import codec\nfrom agentsim.version import x"),
        ("results/a.py", "from . import b\nfrom .b import c\nfrom agentsim.results.b import d"),
        ("worker/a.py", "from agentsim.games import x\nimport numpy, agentsims"),
        ("testing/a.py", "from agentsim.cli import x"),
        ("__main__.py", "from agentsim.cli import main"),
    ],
)
def test_what_the_table_allows_is_let_through(tmp_path: Path, name: str, source: str) -> None:
    path = tmp_path / PACKAGE / name
    path.parent.mkdir(parents=True)
    path.write_text(source)
    assert violations(tmp_path, ORDER) == []


def test_the_table_is_read_row_by_row() -> None:
    design = (
        "## Floors\n\n| floor | package | holds |\n|---|---|---|\n| 1 | `a`, `b/` | `x` |\n"
        "| 1½ | `c/` · `d` | words |\n\n`testing/` holds fakes.\n| 9 | `e` | no |\n"
    )
    assert floors(design) == ["a", "b", "c", "d"]
