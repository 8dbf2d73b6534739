"""One look for all figures: colours that people with any colour vision tell apart, text that stays
text, files that are the same bytes each time."""

from __future__ import annotations

import io
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agentsim.report.words import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MplFigure

WIDTH_IN = 4.2
"""Inches; wide enough for a column of a paper, narrow enough to be read on a phone."""

# Okabe and Ito's palette, and greys. Figures name colours by these keys alone, so that a page can
# give each another value in the dark.
COLOURS = {
    "ink": "#222222",
    "faint": "#8a8a8a",
    "grid": "#dddddd",
    "band": "#dce9f3",
    "bar": "#7fb2d9",
    "mean": "#0072b2",
    "target": "#d55e00",
    "people": "#009e73",
    "equilibrium": "#555555",
    "one": "#a9c9e2",
    "ok": "#56b4e9",
    "truncated": "#e69f00",
    "empty": "#d0d0d0",
    "no_answer": "#cc79a7",
    "ambiguous": "#f0e442",
    "out_of_range": "#d55f01",
    "failed": "#8c8c8c",
    "edge": "#222221",
}
COLOURS_IN_THE_DARK = {
    "ink": "#e8e8e8",
    "faint": "#9a9a9a",
    "grid": "#3b3f44",
    "band": "#24405a",
    "bar": "#3d7fb3",
    "mean": "#6db9ee",
    "target": "#ff9552",
    "people": "#3fd0a4",
    "equilibrium": "#b8b8b8",
    "one": "#456a88",
}
"""Where a page on a dark ground needs others; statuses keep theirs, and their dark hatches."""
HATCHES = {
    "ok": "",
    "truncated": "////",
    "empty": "....",
    "no_answer": "\\\\\\\\",
    "ambiguous": "xxxx",
    "out_of_range": "----",
    "failed": "++++",
}
_PNG_DPI = 230
_LONGEST_NAME = 22
_FALLBACKS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Noto Sans JP",
    "WenQuanYi Micro Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
)
_PARAMETERS: Any = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.edgecolor": COLOURS["faint"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.titlecolor": COLOURS["ink"],
    "axes.facecolor": "white",
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.formatter.use_mathtext": False,
    "axes.unicode_minus": False,
    "grid.color": COLOURS["grid"],
    "grid.linewidth": 0.6,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "xtick.color": COLOURS["faint"],
    "ytick.color": COLOURS["faint"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.labelcolor": COLOURS["ink"],
    "text.color": COLOURS["ink"],
    "text.parse_math": False,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 2.2,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "hatch.linewidth": 0.6,
    "figure.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "agentsim",
    "pdf.fonttype": 42,
}


def prepare() -> None:
    """Keep matplotlib from looking for a home directory; call it before the first import."""
    if "MPLCONFIGDIR" not in os.environ:
        path = os.path.join(tempfile.gettempdir(), f"agentsim-matplotlib-{os.getuid()}")  # noqa: PTH118
        os.environ["MPLCONFIGDIR"] = path


@contextmanager
def style() -> Iterator[None]:
    """Figures made inside have the common look."""
    import matplotlib as mpl

    # Defaults first, so that a matplotlibrc of the user's changes nothing.
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_PARAMETERS)
        mpl.rcParams["font.family"] = _fonts()
        # A name in a script that the font lacks is a box in the PNG and right on the page.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _fonts() -> list[str]:
    """Our font, and what this machine has for names in scripts that it lacks."""
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _FALLBACKS if name in installed)]


def new(
    height_in: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[MplFigure, list[Axes]]:
    """A figure with panels below and beside each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.flat)


def round_axis(axis: Axes, rounds: list[int]) -> None:
    """An axis of whole rounds."""
    from matplotlib.ticker import MaxNLocator

    if len(rounds) == 1:
        axis.set_xlim(rounds[0] - 1, rounds[0] + 1)
        axis.set_xticks(rounds)
    else:
        axis.set_xlim(min(rounds) - 0.3, max(rounds) + 0.3)
        axis.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))


def short(name: str) -> str:
    """A name that was given by others, short enough for a label."""
    name = printable(name)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def legend_below(
    figure: MplFigure, handles: list[Any], labels: list[str], columns: int = 1
) -> None:
    """A legend under all panels."""
    figure.legend(handles, labels, loc="outside lower left", ncols=columns)


def files(figure: MplFigure, title: str, caption: str) -> dict[str, bytes]:
    """The figure as PNG, SVG and PDF, by ending; no file tells when it was made."""
    metadata: dict[str, dict[str, Any]] = {
        "png": {"Software": None, "Title": title, "Description": caption},
        "svg": {"Date": None, "Creator": "agentsim", "Title": title, "Description": caption},
        "pdf": {
            "CreationDate": None,
            "ModDate": None,
            "Creator": "agentsim",
            "Producer": None,
            "Title": title,
            "Subject": caption,
        },
    }
    result = {}
    for ending, facts in metadata.items():
        out = io.BytesIO()
        figure.savefig(out, format=ending, dpi=_PNG_DPI, metadata=facts)
        result[ending] = out.getvalue()
    return result
