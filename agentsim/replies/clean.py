"""Brings a reply to one small alphabet: ASCII digits, one kind of quote, one kind of space.

The meaning of a character is kept, its shape is not. What a reader cannot see is dropped, and what
looks like a digit without being one (superscripts, circled digits, vulgar fractions) becomes
`ODD`, so that no rule can take it for a number or overlook that it stands beside one.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

ODD: Final = "\x1a"
JOINER: Final = "\u00a0"
"""A space that does not end a number: no-break, thin and figure spaces."""

_SAME: Final = {
    # separators inside numbers
    "٫": ".", "．": ".", "٬": "'", "’": "'", "‘": "'", "ʼ": "'", "＇": "'", "′": "'", "´": "'",
    # separators between numbers: none of these is ever a decimal point
    "，": ";", "、": ";", "،": ";", "；": ";", "؛": ";",
    # ends of sentences that are never a decimal point
    "。": "!", "｡": "!", "।": "!", "॥": "!", "۔": "!", "።": "!", "！": "!", "？": "?", "؟": "?",
    "…": "…", "⋯": "…",
    # signs; the minus sign proper is kept apart from the hyphen that also makes bullets
    "−": "−", "－": "−", "﹣": "−", "‐": "-", "‑": "-", "–": "–", "‒": "–",
    "—": "—", "―": "—", "＋": "+", "±": "±", "∓": "±",
    "％": "%", "٪": "%", "﹪": "%", "／": "/", "∕": "/", "⁄": "/",
    "×": "×", "✕": "×", "✖": "×", "∗": "×", "⋅": "×", "·": "×", "÷": "÷", "√": "√",
    "＊": "*", "^": "^", "＾": "^", "≈": "≈", "≅": "≈", "≃": "≈", "∼": "≈", "～": "~", "〜": "~",
    "≤": "≤", "≥": "≥", "⩽": "≤", "⩾": "≥", "＜": "<", "＞": ">", "＝": "=", "：": ":", "﹕": ":",
    "→": "→", "⇒": "→", "➜": "→", "➡": "→", "⟶": "→", "⟹": "→", "➔": "→", "►": "→", "▶": "→",
    "⟩": ")", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "＂": '"',
    "「": '"', "」": '"', "『": '"', "』": '"', "＃": "#", "｜": "|", "＿": "_", "｀": "`",
    "（": "(", "）": ")", "［": "[", "］": "]", "｛": "{", "｝": "}", "【": "[", "】": "]",
    "№": "#",
}  # fmt: skip
_JOINERS: Final = frozenset("\u00a0\u2007\u2008\u2009\u202f")
_OVERRIDES: Final = frozenset("\u202d\u202e")  # show digits in another order than they are stored
_KEYCAP: Final = "\u20e3"


class _Alphabet(dict[int, str]):
    """The table for `str.translate`; each character is looked at once per process."""

    def __missing__(self, code: int) -> str:
        self[code] = same = _same(chr(code))
        return same


def _same(char: str) -> str:
    """What one character means."""
    if char in _SAME:
        return _SAME[char]
    if char in _JOINERS:
        return JOINER
    if char in "\n\r\x0b\x0c\x85\u2028\u2029":
        return "\n"
    if " " <= char <= "~":
        return char.lower()
    if char in _OVERRIDES:
        return ODD
    if char == _KEYCAP or "\ufe00" <= char <= "\ufe0f" or char == "\u034f":
        return ""
    if "\u0335" <= char <= "\u0338":  # struck through
        return ODD
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if "\uff21" <= char <= "\uff5a":  # full-width letters
        return unicodedata.normalize("NFKC", char).lower()
    if category[0] == "L":
        return char.lower()
    return _BY_CATEGORY.get(category, " ") if not _is_word_mark(char, category) else char


def _is_word_mark(char: str, category: str) -> bool:
    """Whether a mark belongs to the spelling of a word, as in Devanagari or Thai."""
    return category in {"Mn", "Mc"} and not "\u0300" <= char <= "\u036f"


_BY_CATEGORY: Final = {
    "Cf": "",
    "Mn": "",
    "Mc": "",
    "Me": "",
    "No": ODD,
    "Nl": ODD,
    "Sm": ODD,
    "Sc": "$",
    "Pd": "–",
    "Ps": "(",
    "Pe": ")",
    "Pi": '"',
    "Pf": '"',
}

_ALPHABET: Final = _Alphabet()
_ANGLED: Final = re.compile(r"<\s?([-+]?[\d.,]{1,30}%?)\s?>")  # `<22>` is decoration, no comparison


def clean(text: str) -> str:
    """A reply in the small alphabet, in lower case. Linear in the text's length."""
    return _ANGLED.sub(r" \1 ", text.translate(_ALPHABET))


def is_blank(text: str) -> bool:
    """Whether a reader sees nothing at all."""
    return not text or all(
        char.isspace() or unicodedata.category(char) in {"Cf", "Cc", "Zs"} for char in text
    )
