"""The tables of docs/performance.md come of the figures that are kept, and can be read."""

from __future__ import annotations

import re

import pytest

from benchmarks import compare, own, tables

PAGE = compare.PAGE.read_text("utf-8")


def test_the_page_has_a_place_for_everything_that_is_rendered() -> None:
    found = {**compare.rendered(compare.load(compare.KEPT)), **own.sections(own.load())}
    assert found.keys() <= tables.places(PAGE).keys()


def test_tables_are_those_of_the_figures_that_are_kept() -> None:
    page = tables.put(PAGE, compare.rendered(compare.load(compare.KEPT)))
    page = tables.put(page, own.sections(own.load()))
    assert page == PAGE, "run: python -m benchmarks.compare --render; … .own --render"


@pytest.mark.parametrize("name", sorted(tables.places(PAGE)))
def test_places_hold_whole_tables_of_numbers(name: str) -> None:
    text = tables.places(PAGE)[name]
    assert text, "nothing was measured"
    if not text.startswith("|"):
        assert all(line.startswith("- ") for line in text.splitlines())
        return
    head, rule, *rows = [line.strip("|").split("|") for line in text.splitlines()]
    assert rows
    assert {len(row) for row in (rule, *rows)} == {len(head)}
    number = r"-?[\d,]+(\.\d+)?"
    cells = [cell.strip() for row in rows for cell in row[1:]]
    assert any(re.fullmatch(rf"{number}( \({number} to {number}\))?", cell) for cell in cells)
