"""The page in a real browser: no error, no request to anywhere, light and dark, on a phone."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from made_runs import EVIL, one_session, three_sessions
from numpy.typing import NDArray

from agentsim.report import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",
]
PEOPLE = {"side": {"categories": {"left": 0.5, "<img src=x onerror=alert(1)>": 0.5}}}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    # Playwright's own loop and pipes are closed a little late.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    one = one_session(
        folder / "one",
        attributes=PEOPLE,
        texts={0: EVIL, 1: "long" * 400, 3: EVIL},
        scenario={"description": EVIL},
        facts={"files": {"/a/very/long/path/" + "x" * 200 + ".yaml": "x"}},
    )
    return {
        "one": write_report(one),
        "three": write_report(three_sessions(folder / "three", attributes=PEOPLE)),
    }


class Seen:
    """What a page did while it was open."""

    def __init__(self, browser: Any, page: Path, scheme: str, width: int) -> None:
        self.context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": 800}
        )
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.goto(page.as_uri())
        self.page.wait_for_load_state("networkidle")

    def picture(self) -> NDArray[np.float64]:
        """`(height, width, 3)` float, 0 to 1."""
        png = self.page.screenshot(full_page=True)
        picture: NDArray[np.float64] = matplotlib.image.imread(io.BytesIO(png))[:, :, :3]
        return picture


@pytest.mark.parametrize("run", ["one", "three"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1100])
def test_the_page_opens_offline_without_a_complaint(
    browser: Any, pages: dict[str, Path], run: str, scheme: str, width: int
) -> None:
    seen = Seen(browser, pages[run], scheme, width)
    assert seen.complaints == []
    assert seen.requests == [pages[run].as_uri()]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    picture = seen.picture()
    corner = picture[0, 0].mean()
    assert (corner > 0.9) if scheme == "light" else (corner < 0.2)
    assert picture.std() > 0.05
    # Figures are drawn, inside the page, and as wide as they should be.
    for box in seen.page.evaluate(
        "[...document.querySelectorAll('svg.figure')].map(s => s.getBoundingClientRect().toJSON())"
    ):
        assert box["width"] > 250
        assert box["right"] <= width
    seen.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_can_be_seen_on_their_ground(
    browser: Any, pages: dict[str, Path], scheme: str
) -> None:
    seen = Seen(browser, pages["three"], scheme, 1100)
    colours = seen.page.evaluate(
        """() => {
            const figure = document.querySelector('svg.figure');
            const look = (element, name) => getComputedStyle(element)[name];
            return [
                look(document.body, 'backgroundColor'),
                look(figure.querySelector('text'), 'fill'),
                look(figure.querySelector('.s-mean'), 'stroke'),
            ];
        }"""
    )
    ground, text, mean = (
        np.array([int(part) for part in colour[4:-1].split(",")]) for colour in colours
    )
    assert np.abs(ground - text).mean() > 150
    assert np.abs(ground - mean).mean() > 60
    seen.context.close()


def test_the_policy_lets_no_script_in(browser: Any, pages: dict[str, Path]) -> None:
    """The strict policy works, so that escaping is not the only guard."""
    seen = Seen(browser, pages["one"], "light", 1100)
    seen.page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'document.title = "broken in"';
            document.body.append(script);
            const image = document.createElement('img');
            image.src = 'http://evil.example/x';
            document.body.append(image);
        }"""
    )
    assert seen.page.title() == "made: finished"
    assert len([line for line in seen.complaints if "Content Security Policy" in line]) == 2
    seen.context.close()


def test_the_page_prints_with_closed_parts_open(browser: Any, pages: dict[str, Path]) -> None:
    seen = Seen(browser, pages["one"], "dark", 1100)
    seen.page.emulate_media(media="print", color_scheme="dark")
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )
    height = seen.page.evaluate(
        "document.querySelector('details table').getBoundingClientRect().height"
    )
    assert height > 50
    assert seen.page.pdf().startswith(b"%PDF")
    seen.context.close()
