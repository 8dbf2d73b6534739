"""Does a written person have the attributes that were drawn? Fact by fact, and conservatively.

What is doubtful counts against a text: it is asked for again, which costs little, while a person
who is not who the table says spoils the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from agentsim.config.population import Categories, Integer
from agentsim.population import wording
from agentsim.population.drafts import Draft
from agentsim.population.facts import Fact
from agentsim.population.phrases import END, Phrases, Text, words_of


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NOT: Final = _set(
    "not no never nor neither without cannot isn aren wasn weren don doesn didn hardly"
)
_OTHERS: Final = _set(
    "mother father mom mum dad parent parents wife husband spouse partner son sons daughter "
    "daughters child children brother brothers sister sisters sibling siblings uncle aunt cousin "
    "grandmother grandfather grandparents grandson granddaughter grandchild grandchildren friend "
    "friends boss colleague colleagues neighbor neighbour neighbors neighbours boyfriend "
    "girlfriend family students pupils patients clients customers coworkers"
)
_PAST: Final = _set("when were was since until before at turned by former formerly")
# Values that mean something only beside the name of their attribute.
_VAGUE: Final = _set("yes no none other others true false low medium high average unknown some n y")
_FEMALE: Final = _set("female woman girl f lady feminine")
_MALE: Final = _set("male man boy m gentleman masculine")
_NEITHER: Final = frozenset(
    ("non-binary", "nonbinary", "non binary", "enby", "agender", "genderqueer", "genderfluid")
)
_SHE: Final = _set("she her hers herself")
_HE: Final = _set("he him his himself")
_TO_THE_PERSON: Final = _set("you your yours yourself i my me myself")
_OLD: Final = (("year", "old"), ("years", "old"), ("years", "of", "age"))
_NEAR = 5


class Verdict(StrEnum):
    """What a text says about one fact."""

    STATED = "stated"
    ABSENT = "absent"
    CONTRADICTED = "contradicted"
    UNCHECKED = "unchecked"
    """Not found, and the text is in a language that the rules do not know."""


def check(draft: Draft, facts: Sequence[Fact], *, english: bool) -> dict[str, Verdict]:
    """What a written person says about each fact, by the attribute's name.

    Age, gender and job are looked for in the parts of these names, in any language; everything
    else in the paragraph. In English the paragraph must not contradict them either.

    Args:
        draft: the person.
        facts: what was drawn.
        english: whether the paragraph is in English.
    """
    text = Text.of(draft.description)
    return {fact.name: _verdict(fact, draft, text, english) for fact in facts}


def _verdict(fact: Fact, draft: Draft, text: Text, english: bool) -> Verdict:
    if fact.role == "age":
        return _age(fact, draft, text)
    if fact.role == "gender":
        return _gender(str(fact.value), draft, text, english)
    if isinstance(fact.attribute, Categories):
        return _category(fact, draft, text, english)
    return _number(fact, text)


def _age(fact: Fact, draft: Draft, text: Text) -> Verdict:
    if draft.age != fact.value:
        return Verdict.CONTRADICTED
    others = any(age != fact.value for age in _ages(text))
    return Verdict.CONTRADICTED if others else Verdict.STATED


def _ages(text: Text) -> Iterable[float]:
    """Ages that a paragraph gives the person: `a 41-year-old`, `41 years old`, `aged 41`."""
    for number in text.numbers:
        before, after = text.before(number.start, _NEAR), text.after(number.end, _NEAR)
        is_age = before[-1:] == ("aged",) or any(after[: len(end)] == end for end in _OLD)
        is_other = bool({*before, *after} & _OTHERS or set(before) & _PAST)
        if is_age and not is_other and number.values:
            yield number.values[0]


def _gender(value: str, draft: Draft, text: Text, english: bool) -> Verdict:
    wanted, said = _gender_of(value), _gender_of(draft.gender)
    if wanted is None:
        literal = words_of(value)
        stated = words_of(draft.gender) == literal or _contains(text.words, literal)
        return Verdict.STATED if stated else Verdict.ABSENT
    if said is None:
        return Verdict.ABSENT
    if said != wanted:
        return Verdict.CONTRADICTED
    if english and wanted in "fm" and _speaks_of(text, "m" if wanted == "f" else "f"):
        return Verdict.CONTRADICTED
    return Verdict.STATED


def _gender_of(text: str) -> str | None:
    plain = " ".join(text.casefold().split())
    if plain in _NEITHER:
        return "n"
    words = set(words_of(plain))
    if words & {"non", "not", "trans", "transgender"}:
        return None
    if bool(words & _FEMALE) == bool(words & _MALE):
        return None
    return "f" if words & _FEMALE else "m"


def _speaks_of(text: Text, gender: str) -> bool:
    """Whether a paragraph is plainly about a person of this gender.

    A word such as `woman` counts right behind `you are a`, a pronoun only in a text in the third
    person that has none of the other gender and names nobody else.
    """
    nouns = _FEMALE if gender == "f" else _MALE
    for at, word in enumerate(text.words):
        before = text.before(at, _NEAR)
        told = {"are", "re", "am", "old"} & set(before) and not {"not", *_OTHERS} & set(before)
        if word in nouns and len(word) > 1 and told and "as" not in before[-2:]:
            return True
    words = set(text.words)
    own, other = (_SHE, _HE) if gender == "f" else (_HE, _SHE)
    if words & (_TO_THE_PERSON | other | _OTHERS):
        return False
    return sum(word in own for word in text.words) >= 2


def _category(fact: Fact, draft: Draft, text: Text, english: bool) -> Verdict:
    """A value among categories: it must be there, and no other one."""
    assert isinstance(fact.attribute, Categories)
    names = tuple(wording.plain(name) for name in fact.attribute.categories)
    wanted, phrases = names.index(str(fact.value)), _phrases(names)
    stated = contradicted = False
    if fact.role == "job":
        in_part = {number for number, _ in phrases.found(Text.of(draft.job))}
        stated = wanted in in_part or _has_plural(Text.of(draft.job), str(fact.value))
        contradicted = any(_excludes(names, wanted, number) for number in in_part)
    for number, at in phrases.found(text):
        if not _is_said_of_the_person(text, at, names[number], fact.name):
            continue
        stated = stated or (number == wanted and fact.role != "job")
        contradicted = contradicted or (english and _excludes(names, wanted, number))
    if contradicted:
        return Verdict.CONTRADICTED
    stated = stated or (fact.role != "job" and _has_plural(text, str(fact.value)))
    if stated:
        return Verdict.STATED
    return Verdict.ABSENT if english or fact.role == "job" else Verdict.UNCHECKED


@lru_cache(maxsize=256)
def _phrases(names: tuple[str, ...]) -> Phrases:
    return Phrases(names)


def _excludes(names: Sequence[str], wanted: int, number: int) -> bool:
    """Whether somebody with one value cannot have another: a retired teacher is both."""
    if number == wanted or words_of(names[number]) == words_of(names[wanted]):
        return False
    statuses = wording.STATUS_ADJECTIVES
    return names[wanted].casefold() not in statuses or names[number].casefold() in statuses


def _is_said_of_the_person(text: Text, at: int, value: str, name: str) -> bool:
    if at < 0:
        return True
    before = text.before(at, _NEAR)
    if set(before[-3:]) & _NOT or set(before) & _OTHERS:
        return False
    if value.casefold() not in _VAGUE and len(value) > 2:
        return True
    around = set(before) | set(text.after(at, _NEAR + 1))
    return bool(around & set(words_of(name)))


def _has_plural(text: Text, value: str) -> bool:
    """Whether the value is there with an English ending: `nurses`, `masters`."""
    *first, last = words_of(value) or ("",)
    return bool(last) and any(
        _contains(text.words, (*first, last + ending)) for ending in ("s", "es")
    )


def _contains(words: Sequence[str], phrase: tuple[str, ...]) -> bool:
    length = len(phrase)
    return length > 0 and any(
        words[at] == phrase[0] and tuple(words[at : at + length]) == phrase
        for at in range(len(words) - length + 1)
    )


def _number(fact: Fact, text: Text) -> Verdict:
    """A number: in digits of any script or in English words. A real number may be rounded."""
    assert not isinstance(fact.value, str)
    accepted = _roundings(fact)
    if any(value in accepted for number in text.numbers for value in number.values):
        return Verdict.STATED
    name = words_of(fact.name)
    beside = [
        text.before(at, 3) + text.after(at, _NEAR)
        for at in range(len(text.words))
        if name and text.words[at : at + len(name)] == name
    ]
    if fact.value == 0 and any(set(words) & _NOT for words in beside):
        return Verdict.STATED
    is_there = any(word[0].isdigit() for words in beside for word in words if word != END)
    return Verdict.CONTRADICTED if is_there else Verdict.ABSENT


def _roundings(fact: Fact) -> frozenset[float]:
    """The value, and what people make of a real number when they say it shorter."""
    value = float(fact.value)
    if isinstance(fact.attribute, Integer):
        return frozenset((value,))
    digits = wording.decimals(fact.attribute)  # type: ignore[arg-type]
    shorter = {round(value, kept) for kept in range(digits + 1)} if abs(value) >= 10 else {value}
    return frozenset(shorter | {value})
