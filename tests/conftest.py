"""Fixtures for tests that run the whole program."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from whole_runs import Program


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Runs `agentsim`; nothing of it may be left at the end of the test."""
    program = Program(tmp_path)
    try:
        yield program
        program.assert_nothing_left()
    finally:
        program.end()


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Path]:
    """Writes a scenario file."""

    def write(*, name: str = "test", **fields: Any) -> Path:
        contents = {
            "name": name,
            "agents": 10,
            "rounds": 2,
            "seed": 1,
            "game": {"type": "guess_average"},
            "model": {"backend": "random"},
        } | fields
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(contents, sort_keys=False))
        return path

    return write
