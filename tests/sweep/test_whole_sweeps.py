"""Whole sweeps by the command line."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from whole_runs import ROOT, Program, table


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


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_sweep_goes_on_where_it_was(
    program: Program, scenario: Callable[..., Path], tmp_path: Path, number: signal.Signals
) -> None:
    path = scenario(
        sessions=2,
        rounds=3,
        model={"backend": "dummy", "think_s": 0.5, "jitter_s": 0.5},
        sweep={"seed": [1, 2, 3]},
    )
    out = tmp_path / "out"
    first = program.begin("run", path, "--out", out)
    second = out / "cells" / "0002-seed-2" / "announcements"
    program.wait_for(lambda: second.exists() and list(second.glob("*.parquet")), 120)
    os.kill(first.pid, number)
    _, err = first.communicate(timeout=60)
    assert first.returncode == {2: 130, 15: 143, 9: -9}[number]
    if number != signal.SIGKILL:
        assert f"agentsim resume {out}" in err
    listed = json.loads(program.run("runs", out, "--json")[0])
    assert [run["state"] for run in listed] == ["interrupted", "finished", "interrupted"]
    assert listed[0]["cells"] == {"finished": 1, "interrupted": 1, "waiting": 1}
    began = (out / "cells" / "0001-seed-1" / "manifest.json").read_text()
    text, _ = program.run("resume", out, timeout_s=300)
    assert "3 of 3 cells finished" in text
    assert (out / "cells" / "0001-seed-1" / "manifest.json").read_text() == began
    names = sorted(cell.name for cell in (out / "cells").iterdir())
    assert names == ["0001-seed-1", "0002-seed-2", "0003-seed-3"]
    alone = ["--set", "sweep={}", "--seed", 2]
    program.run("run", path, *alone, "--out", tmp_path / "alone", "--quiet", timeout_s=300)
    assert table(out / "cells" / "0002-seed-2") == table(tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_failed_cell_does_not_end_the_others_and_is_tried_again(
    program: Program, scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """A run may take no longer than its limit; the cell that does is tried in vain again."""
    path = scenario(
        model={"backend": "dummy", "think_s": 0.1},
        limits={"wall_s": 100},
        sweep=[{"seed": 1}, {"model.think_s": 30.0, "limits.wall_s": 2.0}, {"seed": 3}],
    )
    out = tmp_path / "out"
    text, err = program.run("run", path, "--out", out, code=1, timeout_s=300)
    assert "2 of 3 cells finished, 1 failed" in text
    assert "limits.wall_s" in text
    assert "1 of 3 cells failed" in err
    assert f"agentsim resume --retry-failed {out}" in err
    text, err = program.run("resume", out, code=1, timeout_s=100)
    assert "cell 2" not in err
    _, err = program.run("resume", "--retry-failed", out, "--quiet", code=1, timeout_s=100)
    assert "2 (model.think_s=30.0, limits.wall_s=2.0): limits.wall_s" in err
    program.run("run", path, "--resume", out, "--seed", 5, code=2)
    limits = ["--set", "model.think_s=1"]
    _, err = program.run("resume", out, *limits, code=2)
    assert "only its limits" in err
    summary, _ = program.run("resume", out, "--json", code=1)
    assert json.loads(summary)["sweep"]["states"] == {"failed": 1, "finished": 2}
    other = path.with_name("other.yaml")
    other.write_text(path.read_text().replace("seed: 3", "seed: 4"))
    _, err = program.run("run", other, "--resume", out, code=2)
    assert "cell 3: seed was 3, is 4" in err
    program.run("rm", out, "--yes")
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_programs_of_ones_own_are_swept(program: Program, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def main(run):\n"
        "    if run.parameters['size'] == 2:\n"
        "        raise ValueError('two is odd')\n"
        "    run.record('sizes', size=run.parameters['size'])\n"
    )
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\nworkflow: mine:main\nagents: 2\nparameters: {size: 1}\n"
        "sweep: {parameters.size: [1, 2, 3]}\n"
    )
    out = tmp_path / "out"
    text, _ = program.run("run", path, "--out", out, code=1, timeout_s=300)
    assert "2 of 3 cells finished, 1 failed" in text
    assert "two is odd" in " ".join(text.split())
    (tmp_path / "mine.py").write_text("def main(run):\n    pass\n")
    _, err = program.run("resume", "--retry-failed", out, code=2)
    assert "a program has changed" in err


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_node_that_is_killed_takes_one_cell_with_it(
    program: Program, scenario: Callable[..., Path], tmp_path: Path
) -> None:
    path = scenario(model={"backend": "dummy", "think_s": 1.0}, rounds=3, sweep={"seed": [1, 2, 3]})
    out = tmp_path / "out"
    sweep = program.begin("run", path, "--out", out)
    program.wait_for(lambda: list(out.glob("cells/0001-*/announcements/*.parquet")), 120)
    (node,) = program.processes("-m agentsim.node")
    os.kill(node, signal.SIGKILL)
    text, _ = sweep.communicate(timeout=300)
    assert sweep.returncode == 1
    assert "2 of 3 cells finished, 1 failed" in text
    program.run("resume", out, "--retry-failed", timeout_s=300)
    alone = ["--set", "sweep={}", "--seed", 1]
    program.run("run", path, *alone, "--out", tmp_path / "alone", "--quiet", timeout_s=300)
    assert table(out / "cells" / "0001-seed-1") == table(tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["sweep_models", "sweep_theory"])
def test_what_is_shipped_runs_and_has_a_report(program: Program, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    file = ROOT / "scenarios" / f"{name}.yaml"
    program.run("run", file, "--agents", 50, "--out", out, "--quiet", timeout_s=300)
    page, _ = program.run("report", out)
    assert "means_by_cell" in Path(page.strip()).read_text()
    listed, _ = program.run("runs", tmp_path)
    assert "cells finished" in listed


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_model_stays_loaded_over_the_cells(
    program: Program, scenario: Callable[..., Path], tmp_path: Path
) -> None:
    pytest.importorskip("xllamacpp")
    path = scenario(
        agents=2,
        rounds=1,
        model={"backend": "llama_cpp", "max_tokens": 8},
        replies={"attempts": 1},
        limits={"missing_share": 1.0},
        sweep={"model.temperature": [0.1, 1.0], "prompt": ["direct", "rational"]},
    )
    sweep = program.begin("run", path, "--out", tmp_path / "out", "--quiet")
    servers: set[int] = set()

    def ended() -> bool:
        servers.update(program.processes("llama_cpp_server"))
        return sweep.poll() is not None

    program.wait_for(ended, 600)
    _, err = sweep.communicate()
    assert sweep.returncode == 0, err
    assert len(servers) == 1
