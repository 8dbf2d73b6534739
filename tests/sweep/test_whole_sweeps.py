"""Whole sweeps by the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from whole_runs import Program, table


def test_a_sweep_of_theory_players_gives_what_single_runs_give(
    program: Program, scenario: Callable[..., Path], tmp_path: Path
) -> None:
    path = scenario(
        model={"backend": "cognitive_hierarchy"},
        sessions=2,
        sweep={"model.tau": [1.0, 3.0]},
    )
    out, err = program.run("run", path, "--out", tmp_path / "out", timeout_s=300)
    assert "test: finished, 2 of 2 cells finished" in out
    assert "cell 2 of 2: model.tau=3.0" in err
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    cells = [tmp_path / "out" / row["run"] for row in summary["cells"]]
    assert [cell.name for cell in cells] == ["0001-tau-1.0", "0002-tau-3.0"]
    assert all(row["first"]["sd"] > 0 and row["valid_share"] == 1 for row in summary["cells"])
    alone = ["--set", "sweep={}", "--set", "model.tau=3.0"]
    program.run("run", path, *alone, "--out", tmp_path / "alone", "--quiet", timeout_s=300)
    assert table(cells[1]) == table(tmp_path / "alone")
