"""Words and numbers of a text, and finding phrases in them. Everything is linear in the text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from agentsim.replies.numbers import NUMBER_WORDS, read_words

END: Final = "."
"""Stands among the words where a sentence ends."""
_TOKEN: Final = re.compile(
    r"\d++(?:[.,'٫٬]\d++)*+"  # numbers, with what separates thousands or decimals
    r"|[^\W\d_]++"
    r"|[.!?;\n。！？।؟]"
)
_DOCTORATE: Final = re.compile(r"\bph\.\s?d\b\.?")
_GROUPED: Final = re.compile(r"\d{1,3}(?:[,.']\d{3})+")
_MOST_DIGITS: Final = 30
# Scripts that put no space between words: there a value is looked for as a piece of text.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)


class Number(NamedTuple):
    """A number in a text.

    Attributes:
        start, end: its place among the words.
        values: what it may mean: `1,000` is a thousand or one.
    """

    start: int
    end: int
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A text taken apart.

    Attributes:
        plain: in one form and lower case.
        words: words, numbers as they are written, and `END` between sentences.
        numbers: in digits first, then in English words.
    """

    plain: str
    words: tuple[str, ...]
    numbers: tuple[Number, ...]

    @classmethod
    def of(cls, text: str) -> Text:
        """Take a text apart."""
        plain = plain_form(text)
        words = tuple(found if found[0].isalnum() else END for found in _TOKEN.findall(plain))
        in_digits = (
            Number(at, at + 1, tuple(_readings(word)))
            for at, word in enumerate(words)
            if word[0].isdigit()
        )
        return cls(plain, words, (*in_digits, *_in_words(words)))

    def before(self, at: int, count: int) -> tuple[str, ...]:
        """Up to so many words before a place, in the same sentence."""
        found = self.words[max(0, at - count) : at]
        ends = [i for i, word in enumerate(found) if word == END]
        return found[ends[-1] + 1 :] if ends else found

    def after(self, at: int, count: int) -> tuple[str, ...]:
        """Up to so many words from a place on, in the same sentence."""
        found = self.words[at : at + count]
        return found[: found.index(END)] if END in found else found


def plain_form(text: str) -> str:
    """A text in one form: one kind of apostrophe, ASCII digits, no underscores, lower case."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'").replace("_", " ").casefold()
    if not text.isascii():
        text = "".join(
            str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text
        )
    return _DOCTORATE.sub("phd", text)


@lru_cache(maxsize=8192)
def words_of(phrase: str) -> tuple[str, ...]:
    """The words of a short phrase, such as a category."""
    return tuple(word for word in Text.of(phrase).words if word != END)


class Phrases:
    """Phrases that are looked for together: at each place the longest one is found.

    Args:
        phrases: e.g. the categories of an attribute.
    """

    def __init__(self, phrases: Sequence[str]) -> None:
        self._starts: dict[str, dict[tuple[str, ...], int]] = {}
        self._pieces: list[tuple[str, int]] = []
        self._longest = 0
        for number, phrase in enumerate(phrases):
            words = words_of(phrase)
            if _UNSPACED.search(phrase) or not words:
                self._pieces.append((plain_form(phrase).strip(), number))
            else:
                self._starts.setdefault(words[0], {}).setdefault(words, number)
                self._longest = max(self._longest, len(words))
        self._pieces.sort(key=lambda piece: -len(piece[0]))

    def found(self, text: Text) -> Iterator[tuple[int, int]]:
        """Which phrases stand in a text: the number of each, and where in `text.words`.

        A piece of a text without spaces has no place there: it is -1.
        """
        at = 0
        while at < len(text.words):
            length, number = self._at(text.words, at)
            if length:
                yield number, at
            at += max(length, 1)
        plain = text.plain
        for piece, number in self._pieces:
            if piece and piece in plain:
                yield number, -1
                plain = plain.replace(piece, " ")

    def _at(self, words: Sequence[str], at: int) -> tuple[int, int]:
        known = self._starts.get(words[at])
        if known is not None:
            for length in range(min(self._longest, len(words) - at), 0, -1):
                number = known.get(tuple(words[at : at + length]))
                if number is not None:
                    return length, number
        return 0, -1


def _readings(written: str) -> Iterator[float]:
    """What a number in digits may mean."""
    if len(written) > _MOST_DIGITS:
        return
    written = written.replace("٫", ".").replace("٬", ",")
    if written.isdigit():
        yield float(written)
        return
    separators = [char for char in written if not char.isdigit()]
    if _GROUPED.fullmatch(written):
        yield float("".join(char for char in written if char.isdigit()))
    if len(separators) == 1 and separators[0] in ".,":
        yield float(written.replace(",", "."))
    elif separators[-1] in ".," and separators[-1] not in separators[:-1]:
        whole, _, decimals = written.rpartition(separators[-1])
        if _GROUPED.fullmatch(whole):
            yield float("".join(char for char in whole if char.isdigit()) + f".{decimals}")


def _in_words(words: Sequence[str]) -> Iterator[Number]:
    """English numbers in words: `forty-one` is two of them."""
    start = 0
    while start < len(words):
        end = start
        while end < len(words) and words[end] in NUMBER_WORDS:
            end += 1
        if end > start:
            value = read_words(words[start:end])
            if value is not None:
                yield Number(start, end, (value,))
        start = max(end, start + 1)
