"""A page for each code of a finding: its meaning, a wrong and a right example, how to mend it."""

from __future__ import annotations

from agentsim.config.codes import CODES
from agentsim.config.explanations import keys, texts, values
from agentsim.config.explanations.page import Example, Page

__all__ = ["PAGES", "Example", "Page", "markdown"]

PAGES: dict[str, Page] = {
    code: page
    for part in (texts.PAGES, keys.PAGES, values.PAGES)
    for code, page in sorted(part.items())
}
"""The pages by code: texts first, then keys and words, then values."""


def markdown(code: str, *, level: int = 1) -> str:
    """A page as Markdown.

    Args:
        code: one of `PAGES`.
        level: of its heading.

    Raises:
        KeyError: there is no such page.
    """
    page = PAGES[code]
    parts = [
        f"{'#' * level} {code}",
        f"{_sentence(CODES[code])} {page.means}",
        "Wrong:",
        _block(page.wrong, "wrong"),
        "Right:",
        _block(page.right, "right"),
        page.mend,
    ]
    return "\n\n".join(parts) + "\n"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _block(example: Example, check: str) -> str:
    if example.args:
        return f"```sh {check}\n{example.shown()}```"
    return f"```yaml {check}\n# {example.file}\n{example.shown()}```"
