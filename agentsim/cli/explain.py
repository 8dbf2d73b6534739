"""`agentsim explain`: what a code of a finding means, with a wrong and a right example."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agentsim.config.explanations import Example

_WIDTH = 79


def explain(
    code: Annotated[
        str | None,
        typer.Argument(help="The word in brackets, e.g. unknown-key.", show_default=False),
    ] = None,
) -> None:
    """Say what a finding's code means; without a code, list all."""
    from agentsim.config import CODES

    if code is None:
        widest = max(map(len, CODES))
        for name, meaning in sorted(CODES.items()):
            print(f"{name:{widest}}  {meaning}")
        return
    print(_page(_known(code)), end="")


def _known(code: str) -> str:
    """The code that was meant.

    Raises:
        UserError: there is no such code.
    """
    from agentsim.config import CODES
    from agentsim.config.words import suggestion
    from agentsim.errors import UserError

    name = code.strip().removeprefix("error").strip("[]:").lower()
    if name in CODES:
        return name
    hint = suggestion(name, CODES) or "`agentsim explain` lists all codes"
    raise UserError(f"there is no code `{code[:60]}`; {hint}")


def _page(code: str) -> str:
    """A page as text of a terminal."""
    from agentsim.config import CODES
    from agentsim.config.explanations import PAGES

    page = PAGES[code]
    parts = [
        _wrapped(f"{code}: {CODES[code]}"),
        _wrapped(page.means),
        "Wrong:",
        _indented(page.wrong),
        "Right:",
        _indented(page.right),
        _wrapped(page.mend),
    ]
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False, break_long_words=False)


def _indented(example: Example) -> str:
    head = "" if example.args else f"# {example.file}\n"
    return textwrap.indent(f"{head}{example.shown()}".rstrip("\n"), "    ")
