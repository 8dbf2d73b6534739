"""Which figures there are, and drawing them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentsim.report.counts import Counts
from agentsim.report.figures import style
from agentsim.report.words import Number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, ready to be written.

    Attributes:
        name: of its files.
        title: what it shows, a few words.
        caption: what its marks are, and n.
        files: its contents by ending: png, svg, pdf.
    """

    name: str
    title: str
    caption: str
    files: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Material:
    """What figures are drawn from.

    Attributes:
        summary, manifest: contents of the run's files.
        counts: of its actions.
        number: how guesses are written.
        unit: label of an axis of guesses, with the game's range.
        limits: smallest and largest guess of the game.
    """

    summary: Data
    manifest: Data
    counts: Counts
    number: Number
    unit: str
    limits: tuple[float, float]

    @property
    def equilibria(self) -> list[float]:
        """Equilibrium guesses, a few at most."""
        guesses = (self.manifest.get("equilibrium") or {}).get("guesses") or []
        return [float(guess) for guess in guesses][:5]


Sketch = tuple["MplFigure", str]


def draw(material: Material) -> list[Figure]:
    """Draw every figure that the run has something for."""
    style.prepare()
    from agentsim.report.figures.attributes import means_by_attribute
    from agentsim.report.figures.groups import means_by_group
    from agentsim.report.figures.guesses import guesses_by_round
    from agentsim.report.figures.means import means_by_round
    from agentsim.report.figures.statuses import statuses_by_round

    sketches: dict[str, tuple[str, Callable[[Material], Sketch | None]]] = {
        "means_by_round": ("Means by round", means_by_round),
        "guesses_by_round": ("Guesses by round", guesses_by_round),
        "means_by_group": ("Means by group", means_by_group),
        "means_by_attribute": ("Means by attribute", means_by_attribute),
        "statuses_by_round": ("Statuses by round", statuses_by_round),
    }
    result = []
    with style.style():
        for name, (title, sketch) in sketches.items():
            if drawn := sketch(material):
                figure, caption = drawn
                result.append(Figure(name, title, caption, style.files(figure, title, caption)))
    return result


def chosen(rows: list[int], most: int) -> list[int]:
    """At most so many of the rows, the first and the last among them, evenly spaced."""
    if len(rows) <= most:
        return rows
    places = {round(i * (len(rows) - 1) / (most - 1)) for i in range(most)}
    return [rows[i] for i in sorted(places)]
