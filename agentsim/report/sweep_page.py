"""The report of a sweep: its table, means by round of its cells, and where the runs are."""

from __future__ import annotations

from agentsim.report.figures.cells import draw_cells
from agentsim.report.page import Table, filled
from agentsim.report.sweep import columns, progress
from agentsim.report.words import printable
from agentsim.results.sweep import SweepDirectory
from agentsim.results.sweep_table import as_csv, table


def make_sweep_report(directory: SweepDirectory) -> dict[str, bytes]:
    """The report's files by their path in its folder.

    Raises:
        ResultsError: something cannot be read.
    """
    contents = table(directory, directory.read())
    figures = draw_cells(contents)
    whole, cells = contents["sweep"], contents["cells"]
    shown: dict[str, list[str]] = {}
    for column in columns(contents):
        # Titles head columns in words; two of the same are told apart by a blank.
        title = column.title + " " * sum(key.strip() == column.title for key in shown)
        shown[title] = column.cells
    words = tuple(column.title for column in columns(contents) if column.words)
    html = filled(
        "sweep.html.j2",
        figures,
        {
            "name": printable(whole["name"]),
            "state": whole["state"],
            "progress": progress(whole["states"]),
            "cells": Table("by cell", shown, words),
            "reasons": [
                f"cell {row['number']} {row['state']}: {printable(row['reason'])}"
                for row in cells
                if row["reason"]
            ],
            "runs": Table(
                "directories of the runs",
                {
                    "cell": [str(row["number"]) for row in cells],
                    "sets": [printable(row["words"]) for row in cells],
                    "run": [printable(row["run"] or "not begun") for row in cells],
                },
                ("sets", "run"),
            ),
        },
    )
    files = {"report.html": html.encode(), "tables/sweep.csv": as_csv(contents)}
    for figure in figures:
        for ending, content in figure.files.items():
            files[f"figures/{figure.name}.{ending}"] = content
    return files
