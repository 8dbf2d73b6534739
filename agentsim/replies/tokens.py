"""Cuts a cleaned reply into words, numbers and signs. One pass, one regular expression.

Decoration (emphasis, quotes, brackets, code fences, LaTeX that only sets type) is left out: it
changes how a reply looks and never what it says. Every alternative of the expression is possessive
or bounded, so that no text makes it look at a character more than a few times.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final, NamedTuple

from agentsim.replies.clean import JOINER, ODD
from agentsim.replies.vocabulary import word_set


class Kind(Enum):
    """What a token is."""

    WORD = auto()
    NUMBER = auto()
    FRACTION = auto()  # LaTeX: the text is `numerator/denominator`
    BOX = auto()  # LaTeX: a finished box, cut out before
    END = auto()  # of a sentence
    LINE = auto()  # one or more line ends
    DASH = auto()
    OPERATOR = auto()
    EQUALS = auto()  # = ≈ and their like
    BOUND = auto()  # < > ≤ ≥ ±
    PERCENT = auto()
    LABEL = auto()  # an answer tag or `####`
    ODD = auto()  # a digit-like character that is no digit
    MARK = auto()  # , ; : ( ) | → ~


class Token(NamedTuple):
    """One piece of a reply.

    Attributes:
        kind: what it is.
        text: its text, long words cut short.
        start: where it starts in the cleaned text.
        end: where it ends there.
    """

    kind: Kind
    text: str
    start: int
    end: int


BOX_MARK: Final = "\x1b"
"""Stands in the text where a LaTeX box was cut out."""

_LATIN = "a-zß-öø-ɏͰ-ϿЀ-ӿ"
_PATTERN: Final = re.compile(
    rf"""
      (?P<fence>```+(?:[a-z][\w+-]{{0,20}}(?=\n))?)
    | (?P<line>\n[\s]*+)
    | (?P<frac>\\[dtc]?frac(?:\s{{0,3}}(?:\{{[^{{}}{BOX_MARK}]{{0,60}}\}}|\d)){{2}})
    | (?P<percent>\\?%)
    | (?P<latex>\\(?:[a-z]++\*?|[^\n{BOX_MARK}]))
    | (?P<special><\|[^<>|\n{BOX_MARK}]{{0,40}}\|>)
    | (?P<tag></?[a-z][^<>\n{BOX_MARK}]{{0,60}}>)
    | (?P<entity>&\#?\w{{1,8}};)
    | (?P<number>(?:\d++(?:[.,'_{JOINER}]\d++)*+|(?<![\w.])\.\d++)(?:e[-+]?\d++(?!\w))?)
    | (?P<word>[{_LATIN}][{_LATIN}0-9_]*+(?:'[{_LATIN}]++)*+|[^\x00-\x7f{JOINER}–—−…≈×÷±√≤≥→…]++)
    | (?P<end>\.(?:\s?\.)++|[.!?…]++)
    | (?P<arrow>[-=]{{1,3}}>|→)
    | (?P<dash>--+|[-–—−])
    | (?P<equals>==?|≈)
    | (?P<bound>[<>]=?|[±≤≥])
    | (?P<star>\*+)
    | (?P<hash>\#+)
    | (?P<strike>~~)
    | (?P<operator>[+/×÷^√])
    | (?P<odd>{ODD}+)
    | (?P<box>{BOX_MARK})
    | (?P<mark>[,;:()|~])
    """,
    re.VERBOSE,
)
_TYPESETTING: Final = word_set(
    "text textbf textit textrm textsf texttt mathbf mathrm mathit mathsf mathtt mathbb bm "
    "boldsymbol bf rm em emph underline displaystyle left right big bigg quad qquad "
    "hspace operatorname mbox large huge color begin end center"
)
_COMMANDS: Final = {
    "times": (Kind.OPERATOR, "×"), "cdot": (Kind.OPERATOR, "×"), "div": (Kind.OPERATOR, "÷"),
    "pm": (Kind.BOUND, "±"), "sqrt": (Kind.OPERATOR, "√"),
    "approx": (Kind.EQUALS, "≈"), "simeq": (Kind.EQUALS, "≈"), "sim": (Kind.MARK, "~"),
    "le": (Kind.BOUND, "≤"), "leq": (Kind.BOUND, "≤"), "lt": (Kind.BOUND, "<"),
    "ge": (Kind.BOUND, "≥"), "geq": (Kind.BOUND, "≥"), "gt": (Kind.BOUND, ">"),
    "to": (Kind.MARK, "→"), "rightarrow": (Kind.MARK, "→"), "implies": (Kind.MARK, "→"),
    "longrightarrow": (Kind.MARK, "→"), "therefore": (Kind.WORD, "therefore"),
}  # fmt: skip
_ANSWER_TAG: Final = re.compile(
    r"<(?:my|final|the)?[_ -]?(?:answer|number|guess|choice|pick|action|decision)>"
)
_ABBREVIATED: Final = word_set("approx ca no nr vs etc ans circa min max")
_LONGEST_WORD = 40


def tokenize(text: str) -> list[Token]:
    """The tokens of a cleaned text, without decoration."""
    tokens: list[Token] = []
    for match in _PATTERN.finditer(text):
        name = match.lastgroup
        start, end = match.span()
        piece = match.group() if end - start <= _LONGEST_WORD or name == "number" else ""
        made = _make(str(name), piece or match.group()[:_LONGEST_WORD], match, tokens)
        if made is not None:
            tokens.append(Token(made[0], made[1], start, end))
    return tokens


_PLAIN: Final = {
    "line": Kind.LINE,
    "percent": Kind.PERCENT,
    "number": Kind.NUMBER,
    "equals": Kind.EQUALS,
    "operator": Kind.OPERATOR,
    "odd": Kind.ODD,
    "box": Kind.BOX,
    "mark": Kind.MARK,
}


def _make(
    name: str, piece: str, match: re.Match[str], before: list[Token]
) -> tuple[Kind, str] | None:
    """Kind and text of a token; None for decoration."""
    if name in _PLAIN:
        return _PLAIN[name], "\n" if name == "line" else piece
    if name == "word":
        return Kind.WORD, piece.rstrip("_")
    if name == "end":
        return None if _is_abbreviation(piece, match, before) else (Kind.END, piece)
    if name == "dash":
        return _dash(match, before)
    if name == "bound":
        is_quote = piece == ">" and _starts_line(before) and not _next_is_digit(match)
        return None if is_quote else (Kind.BOUND, piece)
    if name == "arrow":
        return Kind.MARK, "→"
    if name == "star":
        return _star(match)
    if name == "hash":
        return _hash(piece, before)
    if name == "strike":
        return Kind.OPERATOR, "~~"
    if name == "frac":
        return _fraction(piece)
    if name == "latex":
        return _command(piece[1:].rstrip("*"))
    if name == "tag" and _ANSWER_TAG.fullmatch(piece):
        return Kind.LABEL, "<answer>"
    if name == "tag" and piece.startswith("<br"):
        return Kind.LINE, "\n"
    return None


def _starts_line(before: list[Token]) -> bool:
    return not before or before[-1].kind is Kind.LINE


def _next_is_digit(match: re.Match[str]) -> bool:
    return match.string[match.end() : match.end() + 2].lstrip()[:1].isdigit()


def _dash(match: re.Match[str], before: list[Token]) -> tuple[Kind, str] | None:
    """A dash or minus; a line of hyphens is decoration."""
    piece = match.group()
    is_ruler = len(piece) > 2 and (_starts_line(before) or before[-1].text in {"|", ":"})
    if is_ruler:
        return None
    return Kind.DASH, piece if len(piece) == 1 else "—"


def _is_abbreviation(piece: str, match: re.Match[str], before: list[Token]) -> bool:
    """Whether a point belongs to the word before it, as in `approx. 22` or `e.g. 22`."""
    if piece != "." or not before or before[-1].end != match.start():
        return False
    word = before[-1]
    is_initial = len(word.text) == 1 and word.text != "i" and word.text.isascii()
    return word.kind is Kind.WORD and (word.text in _ABBREVIATED or is_initial)


def _star(match: re.Match[str]) -> tuple[Kind, str] | None:
    """A star multiplies between two things; elsewhere it is emphasis or a bullet."""
    text = match.string
    left, right = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
    if len(match.group()) <= 2 and left.isdigit() and right.isdigit():
        return Kind.OPERATOR, "*"
    if len(match.group()) > 1:
        return None
    is_tight = (left.isalnum() or left == ")") and (right.isalnum() or right == "(")
    line = text[max(0, match.start() - 8) : match.start()].rpartition("\n")[2]
    is_spaced = left.isspace() and right.isspace() and bool(line.strip())
    return (Kind.OPERATOR, "*") if is_tight or is_spaced else None


def _hash(piece: str, before: list[Token]) -> tuple[Kind, str] | None:
    """Four of them at the start of a line announce the answer in many data sets."""
    return (Kind.LABEL, "####") if _starts_line(before) and len(piece) == 4 else None


def _fraction(piece: str) -> tuple[Kind, str]:
    """Numerator and denominator of a LaTeX fraction; anything but plain numbers is odd."""
    body = piece.partition("frac")[2].replace(" ", "").replace("\n", "")
    if "{" in body:
        parts = re.findall(r"\{([^{}]*)\}|(\d)", body)
        upper, lower = (braced or single for braced, single in parts[:2])
    else:
        upper, lower = body[0], body[-1]
    is_plain = all(re.fullmatch(r"-?(?:\d+(?:\.\d*)?|\.\d+)", part) for part in (upper, lower))
    return (Kind.FRACTION, f"{upper}/{lower}") if is_plain else (Kind.ODD, ODD)


def _command(name: str) -> tuple[Kind, str] | None:
    """A LaTeX command: a sign, plain typesetting, or a word of its own."""
    if name in _COMMANDS:
        return _COMMANDS[name]
    if name == "\\":
        return Kind.LINE, "\n"
    if not name[:1].isalpha() or name in _TYPESETTING:
        return None
    return (Kind.ODD, ODD) if name.endswith("frac") else (Kind.WORD, name)
