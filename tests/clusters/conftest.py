"""Fixtures for tests of clusters that stay."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from whole_runs import Program


class Lab:
    """A cluster `lab` that belongs to the test alone.

    Attributes:
        state: where clusters are kept.
    """

    def __init__(self, program: Program, tmp_path: Path) -> None:
        self.program = program
        self.state = tmp_path / "state"
        program.env["XDG_STATE_HOME"] = str(self.state)

    @property
    def folder(self) -> Path:
        """Of the cluster."""
        return self.state / "agentsim" / "clusters" / "lab"

    def run(self, *args: str | Path, code: int = 0, **options: Any) -> tuple[str, str]:
        """Run `agentsim`; loaded machines take their time."""
        return self.program.run(*args, code=code, timeout_s=240, **options)

    def up(self, *args: str, hosts: tuple[str, ...] = ("one",), workers: int = 2) -> None:
        path = self.program.folder / "lab.yaml"
        path.write_text(
            yaml.safe_dump({"hosts": [{"address": h, "workers": workers} for h in hosts]})
        )
        self.run("cluster", "up", path, *args)

    def nodes(self) -> list[dict[str, Any]]:
        """As the cluster's file has them."""
        return json.loads((self.folder / "cluster.json").read_text())["nodes"]  # type: ignore[no-any-return]

    def status(self, code: int = 0) -> dict[str, Any]:
        """Of the cluster; the code is 1 when something is not healthy."""
        out, _ = self.run("cluster", "status", "--json", code=code)
        return json.loads(out)[0]  # type: ignore[no-any-return]

    def report(self) -> dict[str, Any]:
        """Of the only host."""
        return self.status()["hosts"][0]  # type: ignore[no-any-return]

    def down(self) -> str:
        """End it; nothing of it may be left."""
        nodes = self.nodes()
        out, _ = self.run("cluster", "down", "--yes")
        self.program.assert_nothing_left()
        assert not self.folder.exists()
        assert [node["folder"] for node in nodes if Path(node["folder"]).exists()] == []
        return out


@pytest.fixture
def lab(program: Program, tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(program, tmp_path)
    try:
        yield lab
    finally:
        if lab.folder.exists():
            lab.down()


@pytest.fixture
def theory(scenario: Callable[..., Path]) -> Path:
    """A scenario that takes no time."""
    return scenario(name="theory", agents=50, model={"backend": "cognitive_hierarchy"})


@pytest.fixture
def embedded(scenario: Callable[..., Path]) -> Path:
    """A scenario with a model server."""
    model = {"backend": "llama_cpp", "max_tokens": 16, "slots": 2, "context": 1024}
    return scenario(
        name="embedded",
        agents=3,
        rounds=1,
        model=model,
        replies={"attempts": 1},
        limits={"missing_share": 1.0},
    )
