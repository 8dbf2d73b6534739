"""A figure's SVG as part of a page: colours by class, so that the page's own light and dark apply;
no style attributes, which a strict content security policy refuses; ids of its own."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from agentsim.report.figures import style

_SVG = "http://www.w3.org/2000/svg"
_HREF = "{http://www.w3.org/1999/xlink}href"
_NAMES = {value: name for name, value in style.COLOURS.items()}
_LETTERS = {"fill": "f", "stroke": "s"}
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def inline(svg: bytes, name: str, label: str) -> str:
    """The figure as an `<svg>` element.

    Args:
        svg: as matplotlib wrote it.
        name: of the figure; makes its ids unique on the page.
        label: what it shows, for those who cannot see it.
    """
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style", f"{{{_SVG}}}title"}:
                parent.remove(child)
    used = _used(root)
    for element in root.iter():
        _declare(element)
        _name(element, name, used)
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.attrib |= {"role": "img", "aria-label": label, "class": "figure"}
    return ET.tostring(root, encoding="unicode")


def colours_css() -> str:
    """The colours of the figures as variables and classes of a page."""
    light = "".join(f"--{name}:{value};" for name, value in style.COLOURS.items())
    dark = "".join(f"--{name}:{value};" for name, value in style.COLOURS_IN_THE_DARK.items())
    classes = "".join(
        f".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}"
        for name in style.COLOURS
    )
    in_the_dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return f":root{{{light}}}\n{in_the_dark}\n{classes}"


def _declare(element: ET.Element) -> None:
    """Each declaration of the style as an attribute of its own; known colours as classes."""
    pairs = [part.split(":", 1) for part in element.attrib.pop("style", "").split(";") if part]
    declared = {key.strip(): value.strip() for key, value in pairs}
    declared |= {key: element.attrib.pop(key) for key in _LETTERS if key in element.attrib}
    classes = []
    for key, value in declared.items():
        if key in _LETTERS and value in _NAMES:
            classes.append(f"{_LETTERS[key]}-{_NAMES[value]}")
        elif key == "fill" and value in {"#ffffff", "white"}:
            element.set("fill", "none")  # the page is the paper
        else:
            element.set(key, value)
    if classes:
        element.set("class", " ".join(classes))


def _used(root: ET.Element) -> set[str]:
    """Ids that something refers to."""
    found: set[str] = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            found.update(_REFERENCE.findall(value))
            if key == _HREF:
                found.add(value.removeprefix("#"))
    return found


def _name(element: ET.Element, name: str, used: set[str]) -> None:
    if (own := element.attrib.pop("id", None)) in used:
        element.set("id", f"{name}-{own}")
    if _HREF in element.attrib:
        element.set("href", f"#{name}-{element.attrib.pop(_HREF).removeprefix('#')}")
    for key, value in element.attrib.items():
        if _REFERENCE.search(value):
            element.set(key, _REFERENCE.sub(rf"url(#{name}-\1)", value))
