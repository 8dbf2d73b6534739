"""The report of a sweep, and what the terminal shows of one."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from agentsim.report import write_report
from agentsim.report.sweep import one_line, plain_sweep, progress
from agentsim.results.sweep import Asked, Cell, SweepDirectory, make_sweep
from agentsim.results.sweep_table import table

EVIL = "</style><script>alert(1)</script>\x1b[31m"


def summary(mean: float, sd: float | None) -> dict[str, Any]:
    return {
        "run": {"rounds_settled": 2, "wall_s": 1.5},
        "actions": {"settled": 40, "valid": 39, "valid_share": 0.975},
        "over_sessions": [
            {"round": n, "mean_of_means": mean / n, "sd_between_sessions": sd, "sessions": 2}
            for n in (1, 2)
        ],
        "tokens": None,
    }


def a_sweep(path: Path, settings: list[dict[str, Any]], sd: float | None = 0.5) -> SweepDirectory:
    """A sweep whose last cell failed; the others have means."""
    cells = []
    for number, chosen in enumerate(settings, 1):
        fields: dict[str, Any] = {"state": "finished", "runs": (f"cells/{number}",)}
        if number == len(settings):
            fields = {"state": "failed", "reason": f"no model {EVIL}"}
        words = ", ".join(f"{key}={value}" for key, value in chosen.items())
        cells.append(
            Cell(number=number, name=str(number), words=words, set=chosen, scenario={}, **fields)
        )
    directory = SweepDirectory(path)
    directory.create(make_sweep("swept", cells, Asked(folder="/", file="/s.yaml"), {}))
    for cell in cells[:-1]:
        run = directory.path / cell.runs[0]
        run.mkdir()
        (run / "summary.json").write_text(json.dumps(summary(30.0 + cell.number, sd)))
    return directory


@pytest.mark.parametrize("cells", [2, 9])
def test_a_page_with_a_panel_a_cell(tmp_path: Path, cells: int) -> None:
    settings: list[dict[str, Any]] = [{"model.tau": n, "note": EVIL} for n in range(cells)]
    directory = a_sweep(tmp_path / "s", settings)
    page = write_report(directory.path)
    assert page == directory.path / "report" / "report.html"
    html = page.read_text()
    assert "<script" not in html
    assert "\x1b" not in html
    assert "alert(1)" in html
    assert html.count('scope="row"') == 2 * cells
    assert f"{cells - 1} of {cells} cells finished, 1 failed" in html
    text = (page.parent / "tables" / "sweep.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == cells
    figures = {path.name for path in (page.parent / "figures").iterdir()}
    assert figures == {f"means_by_cell.{ending}" for ending in ("png", "svg", "pdf")}
    before = page.read_bytes()
    write_report(directory.path)
    assert page.read_bytes() == before


def test_without_any_round_there_is_no_figure(tmp_path: Path) -> None:
    directory = a_sweep(tmp_path / "s", [{"seed": 1}])
    page = write_report(directory.path)
    assert "means_by_cell" not in page.read_text()
    assert not (page.parent / "figures").exists()


def shown(directory: SweepDirectory) -> str:
    return plain_sweep(table(directory, directory.read()), path=Path("runs/s"))


def test_the_table_of_a_terminal_has_keys_by_their_last_part(tmp_path: Path) -> None:
    settings: list[dict[str, Any]] = [{"model.tau": 0.5, "seed": 1}, {"model.tau": 2}]
    text = shown(a_sweep(tmp_path / "s", settings))
    assert "swept: failed, 1 of 2 cells finished, 1 failed" in text
    head, first, second = text.splitlines()[2:5]
    assert " ".join(head.split()) == "cell tau seed state first sd last sd valid wall"
    assert " ".join(first.split()) == "1 0.5 1 finished 31.00 0.50 15.50 0.50 97.5 % 1.5 s"
    assert " ".join(second.split()) == "2 2 failed - - - - - -"
    assert "\x1b" not in text


def test_what_is_too_wide_has_a_line_of_its_own(tmp_path: Path) -> None:
    settings: list[dict[str, Any]] = [{"game.target": "2/3 * mean " * n} for n in (9, 5)]
    text = shown(a_sweep(tmp_path / "s", settings, sd=None))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "sd" not in text.splitlines()[2]
    assert "game.target=2/3 * mean" in text


def test_how_a_cell_ended_is_one_line() -> None:
    row = {"state": "failed", "wall_s": 61.0, "first": None, "settled": 0, "reason": f"x{EVIL}"}
    line = one_line(row)
    assert line.startswith("failed in 61 s, x</style>")
    assert "\x1b" not in line


def test_progress_names_what_is_left() -> None:
    assert progress({"finished": 2}) == "2 of 2 cells finished"
    assert progress({"waiting": 3, "failed": 1}) == "0 of 4 cells finished, 1 failed, 3 waiting"
