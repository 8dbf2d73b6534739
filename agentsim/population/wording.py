"""Words for the template writer: articles, numbers, and which values can be said in which way."""

from __future__ import annotations

import math
import re

from agentsim.config.population import Real
from agentsim.population.distributions import edges_of

AGE = frozenset({"age"})
GENDER = frozenset({"gender", "sex"})
OCCUPATION = frozenset({"occupation", "job", "profession"})
EDUCATION = frozenset({"education", "education level", "level of education", "schooling"})
INCOME = frozenset({"income"})
CITY = frozenset({"city", "town", "village"})
REGION = frozenset({"region", "state", "province", "county"})
COUNTRY = frozenset({"country"})

GENDER_ADJECTIVES = frozenset(
    {"female", "male", "non-binary", "nonbinary", "transgender", "intersex", "agender"}
)
GENDER_NOUNS = frozenset({"woman", "man", "girl", "boy"})
STATUS_ADJECTIVES = frozenset(
    {"employed", "unemployed", "self-employed", "retired", "self employed", "semi-retired"}
)
# Fields of work and empty answers: "You are a manufacturing" is not English.
_NOT_A_PERSON = re.compile(
    r"(?i)(.*(ing|tion|ture|ment|ness|care|ics|try|[^s]s)|it|law|sales|other|others|none|unknown"
    r"|n/a|na|not .*|no .*|.*\bwork|in .*|at .*|.*[\W\d].*[\W\d].*[\W\d].*)"
)
_AN_NUMBER = re.compile(r"(8|1[18](\d{3})*(\D|$))")
_A_VOWEL = re.compile(r"(uni(?!n|m|d)|us[aeiu]|ut[aei]|uk|ur[aeo]|eu|ewe|one|once)")
_SILENT_H = re.compile(r"(hour|honest|honou?r|heir)")
_ACRONYM = re.compile(r"[A-Z]{1,4}\b")


def plain(text: str) -> str:
    """A name or value as it is said: underscores and line ends become single spaces."""
    return " ".join(text.replace("_", " ").split())


def ended(text: str) -> str:
    """The text as a sentence, with the space that the next one needs."""
    return f"{text} " if text.endswith((".", "!", "?")) else f"{text}. "


def article(word: str) -> str:
    """`a` or `an`, by how the word or number sounds."""
    if _AN_NUMBER.match(word):
        return "an"
    if _ACRONYM.match(word):
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    lower = word.lower()
    if _SILENT_H.match(lower):
        return "an"
    return "an" if lower[:1] in tuple("aeiouáéíóúäöå") and not _A_VOWEL.match(lower) else "a"


def names_a_person(value: str) -> bool:
    """Whether "You are a <value>" is English, as far as the form of the word tells."""
    return bool(value) and value[0].isalpha() and not _NOT_A_PERSON.fullmatch(value)


def is_proper(value: str) -> bool:
    """Whether the value looks like the name of a place (`Hesse`) and not its kind (`rural`)."""
    return value[:1].isupper() or (value[:1].isalpha() and not value[:1].islower())


def decimals(attribute: Real) -> int:
    """Digits after the point that tell apart a hundredth of the attribute's range, at most 12."""
    edges = edges_of(attribute.real)
    span = edges[-1] - edges[0]
    return min(max(2 - math.floor(math.log10(span)), 0), 12)
