"""Makes a run's report: figures, tables and the page, all in one folder that appears whole."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentsim.errors import UserError
from agentsim.report.attributes import read_attributes
from agentsim.report.counts import Counts, count_actions
from agentsim.report.examples import read_examples
from agentsim.report.figures import draw
from agentsim.report.figures.drawn import Material
from agentsim.report.page import Contents, page
from agentsim.report.sweep_page import make_sweep_report
from agentsim.report.tables import tables
from agentsim.report.tau import Tau, fit
from agentsim.report.words import Number
from agentsim.results import RunDirectory, load_run
from agentsim.results.storage import failure
from agentsim.results.sweep import SweepDirectory, is_sweep

_ENTRIES = frozenset({"figures", "tables", "report.html"})


def write_report(path: Path, out: Path | None = None) -> Path:
    """Report on a run or a sweep that was recorded; an older report is replaced as a whole.

    Args:
        path: the directory of the run or sweep.
        out: the report's folder; None: `report` in the run's directory.

    Returns:
        Path of the page.

    Raises:
        UserError: `out` holds something else than a report.
        ResultsError: no run is at `path`, or something cannot be read or written.
    """
    out = path / "report" if out is None else out
    if is_sweep(path):
        _refuse_other(out)
        files = make_sweep_report(SweepDirectory(path))
    else:
        directory = RunDirectory.open(path)
        _refuse_other(out)
        files = make_report(read_numbers(directory))
    temporary = out.with_name(f".{out.name}.{os.getpid()}.tmp")
    try:
        try:
            for name, content in files.items():
                file = temporary / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            _replace(temporary, out)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise failure(out, "cannot write the report", error) from error
    return out / "report.html"


@dataclass(frozen=True, slots=True)
class Numbers:
    """What a report is made from.

    Attributes:
        directory: of the run.
        summary, manifest: contents of the run's files.
        counts: of its actions.
        tau: fitted, or why not.
    """

    directory: RunDirectory
    summary: dict[str, Any]
    manifest: dict[str, Any]
    counts: Counts
    tau: Tau


def read_numbers(directory: RunDirectory) -> Numbers:
    """Read what a report tells of a run; its actions by column, a file at a time.

    Raises:
        UserError: no game was played.
        ResultsError: something cannot be read.
    """
    run = load_run(directory.path)
    if (run.manifest.get("scenario") or {}).get("workflow"):
        raise UserError(
            f"{run.path}: a program of your own was run, and a report is about games; its tables: "
            f'agentsim.load_run("{run.path}").table(NAME)'
        )
    summary, manifest = run.summary, run.manifest
    rule = manifest.get("rule")
    agents = int((manifest.get("scenario") or {}).get("agents") or 0)
    people = read_attributes(directory.personas, agents)
    limits = (float(rule["low"]), float(rule["high"])) if rule else None
    counts = count_actions(directory, summary["rounds"], people, limits)
    return Numbers(directory, summary, manifest, counts, fit(summary, manifest))


def make_report(numbers: Numbers) -> dict[str, bytes]:
    """The report's files by their path in its folder. The same run gives the same bytes.

    Raises:
        ResultsError: something cannot be read.
    """
    summary, manifest, counts, tau = (
        numbers.summary,
        numbers.manifest,
        numbers.counts,
        numbers.tau,
    )
    rule = manifest.get("rule")
    ends = float(counts.edges[0]), float(counts.edges[-1])
    unit = f"guess ({ends[0]:,.6g} to {ends[1]:,.6g})" if rule else "guess"
    figures = draw(Material(summary, manifest, counts, Number.of(rule), unit, ends))
    examples = read_examples(numbers.directory, summary)
    html = page(Contents(summary, manifest, counts, tau, examples, figures))
    files = {"report.html": html.encode()}
    for figure in figures:
        for ending, content in figure.files.items():
            files[f"figures/{figure.name}.{ending}"] = content
    for name, content in tables(summary, manifest, counts, tau).items():
        files[f"tables/{name}.csv"] = content
    return files


def _refuse_other(out: Path) -> None:
    """Nothing but a report is ever replaced."""
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir():
        raise UserError(f"{out}: is no folder; nothing was changed")
    strange = sorted(entry.name for entry in out.iterdir() if entry.name not in _ENTRIES)
    if strange:
        raise UserError(
            f"{out}: is no report: `{strange[0]}` is in it; nothing was changed. "
            "Name a folder that does not exist, or an older report"
        )


def _replace(new: Path, out: Path) -> None:
    """Put a folder in the place of another."""
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        new.rename(out)
        return
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    out.rename(old)
    try:
        new.rename(out)
    except OSError:
        old.rename(out)
        raise
    shutil.rmtree(old)
