"""Which files a report has, what the page says, and what it never lets through."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from made_runs import (
    EVIL,
    TALKING,
    MadeRun,
    one_session,
    svg_alone,
    three_sessions,
    with_groups,
)

from agentsim.errors import ResultsError, UserError
from agentsim.report import write_report
from agentsim.report.figures.drawn import chosen
from agentsim.results import RunEnd

FIGURES = {"means_by_round", "guesses_by_round", "statuses_by_round", "means_by_attribute"}
HALVES = {"side": {"categories": {"left": 0.5, "right": 0.5}}}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


class Page(HTMLParser):
    """Elements of the page and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def page_of(run: Path) -> Page:
    with svg_alone():
        return Page(write_report(run).read_text("utf-8"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one session with its report, to be read only."""
    run = one_session(tmp_path_factory.mktemp("told") / "run", attributes=HALVES)
    assert write_report(run) == run / "report" / "report.html"
    return run


def test_a_report_is_complete(told: Path) -> None:
    run = told
    names = set(contents(run / "report"))
    assert {f"figures/{name}.{e}" for name in FIGURES for e in ("png", "svg", "pdf")} <= names
    assert not list(run.glob(".report*"))
    for name in FIGURES:
        figure = run / "report" / "figures" / name
        assert figure.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
        assert figure.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
        ET.parse(figure.with_suffix(".svg"))


def test_text_in_figures_stays_text(told: Path) -> None:
    figures = told / "report" / "figures"
    assert ">guess (0 to 100)</text>" in (figures / "means_by_round.svg").read_text()
    assert "n = 3 valid of 4" in (figures / "guesses_by_round.svg").read_text()
    pdf = (figures / "means_by_round.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf


def test_two_reports_are_the_same_bytes(told: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from agentsim.report import write_report;"
        "write_report(Path(sys.argv[1]), Path(sys.argv[2]))"
    )
    # In another process, with another hash seed, elsewhere.
    subprocess.run(
        [sys.executable, "-c", code, told, tmp_path / "out"],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
    )
    assert contents(told / "report") == contents(tmp_path / "out")


@pytest.mark.slow
def test_an_older_report_is_replaced_whole(tmp_path: Path) -> None:
    run = one_session(tmp_path / "run")
    write_report(run)
    stale = run / "report" / "figures" / "stale.png"
    stale.write_bytes(b"")
    write_report(run)
    assert not stale.exists()
    assert not list(run.glob(".report*"))


def test_nothing_but_a_report_is_replaced(tmp_path: Path) -> None:
    run = one_session(tmp_path / "run")
    home = tmp_path / "home"
    (home / "figures").mkdir(parents=True)
    (home / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match=r"is no report: `thesis\.tex` is in it"):
        write_report(run, home)
    with pytest.raises(UserError, match="is no folder"):
        write_report(run, home / "thesis.tex")
    assert (home / "thesis.tex").read_text() == "years of work"


def test_the_older_report_stays_when_the_new_one_cannot_be_written(
    told: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    shutil.copytree(told, run)
    before = contents(run / "report")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, svg_alone():
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(ResultsError, match="the disk is full"):
            write_report(run)
    assert contents(run / "report") == before
    assert not list(run.glob(".report*"))


def test_what_models_wrote_is_text(tmp_path: Path) -> None:
    evil_people = {
        "<b>side</b>": {"categories": {"<script>alert(3)</script>": 0.5, "$\\frac{1}{$&": 0.5}}
    }
    run = one_session(
        tmp_path / "run",
        attributes=evil_people,
        texts={0: EVIL, 3: EVIL},
        scenario={"name": "made", "description": EVIL, "prompt": "character"},
        facts={"files": {EVIL: "x"}, "command": EVIL, "people": None},
        end=RunEnd("failed", reason=EVIL, wall_s=1.0),
    )
    with svg_alone():
        html = write_report(run).read_text("utf-8")
    page = Page(html)
    tags = {tag for tag, _ in page.elements}
    assert (
        tags & {"script", "img", "iframe", "object", "link", "form", "b", "foreignobject"} == set()
    )
    assert "<script>alert(1)</script>" in "".join(page.words)
    for tag, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes), tag
        assert "style" not in attributes, tag
        for name in ("href", "src", "action", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#"), tag
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert r"\x1b[31m\u202ered" in html


def test_the_page_asks_for_nothing(told: Path) -> None:
    html = (told / "report" / "report.html").read_text("utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "@import" not in html
    assert re.findall(r"url\((?!#)", html) == []


def test_the_page_can_be_read_without_eyes(told: Path) -> None:
    page = Page((told / "report" / "report.html").read_text("utf-8"))
    tags = [tag for tag, _ in page.elements]
    assert tags.count("h1") == tags.count("main") == 1
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h\d", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for tag, attributes in page.elements:
        if tag == "svg":
            assert attributes["role"] == "img"
            assert attributes["aria-label"]
        if tag == "th":
            assert attributes["scope"] in {"col", "row"}
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    (html,) = (attributes for tag, attributes in page.elements if tag == "html")
    assert html["lang"] == "en"


def test_what_is_wrong_comes_first(told: Path) -> None:
    text = Page((told / "report" / "report.html").read_text("utf-8")).text
    order = [
        "made",
        "6 of 8 actions are valid (75 %); 2 missing: 2 out_of_range",
        "could be: the mean if those missing had answered anything in the range",
        "why replies were not valid",
        "Examples of raw replies",
        "How to repeat it",
        "What this run can and cannot tell",
    ]
    positions = [text.index(words) for words in order]
    assert positions == sorted(positions)


def test_one_session_has_no_interval_and_says_so(tmp_path: Path) -> None:
    text = page_of(one_session(tmp_path / "run")).text
    assert "one session: no interval between sessions" in text
    assert "a difference to another run cannot be told from chance" in text
    assert "15.00 to 40.00" in text
    several = page_of(three_sessions(tmp_path / "three")).text
    assert "no interval between sessions" not in several
    assert "3 sessions are the independent units" in several


@pytest.mark.parametrize(
    ("prompt", "model", "unseen"),
    [
        ("step_by_step", TALKING, True),
        ("character", TALKING, False),
        ("character", {"backend": "cognitive_hierarchy"}, True),
    ],
)
def test_differences_that_cannot_be_real_are_called_chance(
    tmp_path: Path, prompt: str, model: dict[str, Any], unseen: bool
) -> None:
    run = one_session(tmp_path / "run", attributes=HALVES, scenario={"prompt": prompt}, model=model)
    text = page_of(run).text
    assert ("did not know these attributes" in text) is unseen
    assert ("nothing is corrected for that" in text) is not unseen


def test_examples_are_few_different_and_short(tmp_path: Path) -> None:
    texts = dict.fromkeys(range(50), "the same reply") | {7: "x" * 5000}
    values = {(1, 1): [1.0] * 50}
    run = MadeRun(tmp_path / "run", values, model=dict(TALKING), texts=texts).write()
    page = page_of(run)
    examples = [tag for tag, _ in page.elements if tag == "article"]
    assert len(examples) == 2
    assert page.text.count("the same reply") == 1
    assert "and 4,400 more characters" in page.text
    assert "x" * 601 not in page.text


def test_a_run_that_was_killed_is_reported_as_far_as_it_came(tmp_path: Path) -> None:
    run = one_session(tmp_path / "run", end=None, scenario={"rounds": 5})
    text = page_of(run).text
    assert "interrupted" in text
    assert "Only 2 of 5 rounds were settled" in text


def test_a_run_without_any_round_has_a_page(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "run", {}, end=RunEnd("failed", reason="no model")).write()
    text = page_of(run).text
    assert "failed" in text
    assert "no model" in text
    assert "No round was settled: there is nothing to tell." in text
    assert not (run / "report" / "figures").exists()


def test_nobody_answered(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "run", {(1, 1): [None, None]}, model=dict(TALKING)).write()
    text = page_of(run).text
    assert "0 of 2 actions are valid" in text
    assert "tau: none, since round 1 has no mean" in text
    assert not (run / "report" / "figures" / "means_by_round.svg").exists()


@pytest.mark.slow
def test_many_rounds_and_sessions_stay_readable(tmp_path: Path) -> None:
    values: Any = {(s, r): [50.0 / r, 60.0 / r] for s in range(1, 41) for r in range(1, 61)}
    run = MadeRun(tmp_path / "run", values).write()
    page = page_of(run)
    assert "8 of 60 rounds; tables/histogram.csv has all." in page.text
    assert "24 of 60 bars, those with most missing among them; tables/statuses.csv" in page.text
    assert len([tag for tag, _ in page.elements if tag == "tr"]) < 80
    assert len((run / "report" / "report.html").read_bytes()) < 400_000


@pytest.mark.slow
def test_the_worst_of_many_rounds_is_shown(tmp_path: Path) -> None:
    values: Any = {(1, r): [1.0, None if r == 17 else 2.0] for r in range(1, 61)}
    run = MadeRun(tmp_path / "run", values).write()
    write_report(run)
    svg = (run / "report" / "figures" / "statuses_by_round.svg").read_text()
    assert len(re.findall(r">round \d+\s+\(n 2\)</text>", svg)) == 24
    assert re.search(r">round 17\s+\(n 2\)</text>", svg)


def test_the_first_and_the_last_are_among_those_chosen() -> None:
    assert chosen([1, 2, 3], 8) == [1, 2, 3]
    few = chosen(list(range(1, 101)), 8)
    assert (few[0], few[-1], len(few)) == (1, 100, 8)


def test_a_game_without_a_known_range_can_be_shown(tmp_path: Path) -> None:
    run = MadeRun(
        tmp_path / "run", {(1, 1): [3.0, 3.0]}, facts={"rule": None, "equilibrium": None}
    ).write()
    assert "2 of 2 actions are valid" in page_of(run).text


def test_there_must_be_a_run(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no run is here"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_the_page_are_shipped() -> None:
    import tomllib

    root = Path(__file__).parent.parent.parent
    settings = tomllib.loads((root / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["agentsim"]
    shipped = {path for pattern in patterns for path in (root / "agentsim").glob(pattern)}
    assert {"page.css", "page.html.j2"} <= {path.name for path in shipped}


@pytest.mark.slow
def test_figures_say_what_is_not_identified(tmp_path: Path) -> None:
    people = {"source": "Nagel", "note": "n", "means": [39.7]}
    one, three = one_session(tmp_path / "one", facts={"people": people}), tmp_path / "three"
    write_report(one)
    write_report(three_sessions(three))
    svg = (one / "report" / "figures" / "means_by_round.svg").read_text()
    for label in ("could be, had the missing answered", "equilibrium", "target", "people: Nagel"):
        assert f">{label}" in svg
    assert "interval" not in re.sub(r"<metadata>.*</metadata>", "", svg, flags=re.DOTALL)
    svg = (three / "report" / "figures" / "means_by_round.svg").read_text()
    assert ">mean of session means, 95 % interval</text>" in svg
    assert ">one session each</text>" in svg
    assert "could be" not in svg


def test_statuses_can_be_told_without_colours(told: Path) -> None:
    svg = (told / "report" / "figures" / "statuses_by_round.svg").read_text()
    assert "<pattern" in svg
    assert svg.count(">75 %</text>") == svg.count(">25 %</text>") == 2
    assert ">out_of_range</text>" in svg


def test_groups_are_shown_where_there_are_any(tmp_path: Path) -> None:
    run = with_groups(three_sessions(tmp_path / "run"), ["red", "<b>blue</b>"])
    page = page_of(run)
    assert "Means by group" in page.text
    assert "<b>blue</b>" in page.text
    svg = (run / "report" / "figures" / "means_by_group.svg").read_text()
    assert ">red</text>" in svg
    assert ">&lt;b&gt;blue&lt;/b&gt;</text>" in svg
    svg = (run / "report" / "figures" / "statuses_by_round.svg").read_text()
    assert re.search(r">round 2, red\s+\(n 6\)</text>", svg)
