"""Links between the documents lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from blocks import PAGES, ROOT

_LINK = re.compile(r"\[[^\]]+\]\((?!https?:)([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def links(page: Path, text: str | None = None) -> list[str]:
    """Targets of links inside the repository."""
    return _LINK.findall(_FENCED.sub("", page.read_text("utf-8") if text is None else text))


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as a web view of the repository gives them."""
    headings = _HEADING.findall(_FENCED.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path, text: str | None = None) -> list[str]:
    """Links of a page that lead nowhere."""
    found = []
    for link in links(page, text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_every_page_can_be_reached() -> None:
    reached = {ROOT / "README.md"}
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        for link in links(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.suffix == ".md" and target not in reached:
                reached.add(target)
                waiting.append(target)
    assert sorted(str(page.relative_to(ROOT)) for page in set(PAGES) - reached) == []


def test_broken_links_are_seen() -> None:
    page = ROOT / "docs" / "tutorial.md"
    text = "[a](nothing.md) [b](limits-of-a-run.md#nothing) [c](limits-of-a-run.md#small-models)\n"
    assert broken(page, text) == ["nothing.md", "limits-of-a-run.md#nothing"]
