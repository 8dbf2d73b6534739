"""The template writer: a background in plain English from the attributes, without a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from agentsim.config.population import Attribute, Categories, Integer, Population, Real
from agentsim.population import wording
from agentsim.population.distributions import edges_of


@dataclass(frozen=True, slots=True)
class _Said:
    """A column as words: the distinct values and which of them each row has.

    Attributes:
        name: the attribute's name as it is said.
        codes: `(n,)` int32, index into `values`.
        values: the distinct values as they are said.
        attribute: what the file says of it. Where a column is said is decided by this and never
            by the values at hand, which differ between slices.
    """

    name: str
    codes: pa.Array[Any]
    values: list[str]
    attribute: Attribute

    def phrase(self, form: Callable[[str], str]) -> pa.Array[Any]:
        """One text a row."""
        return pa.array([form(value) for value in self.values], type=pa.string()).take(self.codes)

    @property
    def subject(self) -> str:
        keep = self.name[1:2].isupper()  # IQ score, BMI
        return self.name if keep else self.name[:1].lower() + self.name[1:]


@dataclass(slots=True)
class _Roles:
    """Which column is said in which place of the text; `rest` has what no place knows."""

    age: _Said | None = None
    gender: _Said | None = None
    occupation: _Said | None = None
    education: _Said | None = None
    income: _Said | None = None
    places: list[_Said] = field(default_factory=list)
    rest: list[_Said] = field(default_factory=list)


def backgrounds(table: pa.Table, population: Population) -> pa.Array[Any]:
    """Writes each person's background in the second person, e.g.

    `You are a 41-year-old female farmer. You live in Oslo, Norway. Your level of education is
    secondary and your income is 32000.`

    Every attribute is stated: known names (age, gender, occupation, education, income, city,
    region, country and their likes) in a phrase of their own, others as `Your <name> is <value>.`
    Underscores and line ends become spaces. Reals are rounded to a hundredth of the attribute's
    range or finer; an age that is a real number is given in completed years.

    Args:
        table: from `sample`, or any slice of it: a row's text depends on this row alone.
        population: what the table was drawn from.

    Returns:
        `(n,)` strings in the table's order. They may hold 2 GiB together: write tables of more
        than a few million rows slice by slice.
    """
    roles = _assign(table, population)
    parts: list[str | pa.Array[Any]] = []
    if roles.age or roles.gender or roles.occupation:
        parts.extend(_opening(roles.age, roles.gender, roles.occupation, len(table)))
    if roles.places:
        *inner, last = roles.places
        parts.append("You live in ")
        parts.extend(place.phrase(lambda value: f"{value}, ") for place in inner)
        parts.append(last.phrase(wording.ended))
    parts.extend(_means(roles.education, roles.income))
    parts.extend(said.phrase(_sentence(said.subject)) for said in roles.rest)
    joined: Any = pc.binary_join_element_wise(*cast(Any, parts), "")
    return cast("pa.Array[Any]", pc.utf8_rtrim_whitespace(joined))


def _sentence(subject: str) -> Callable[[str], str]:
    return lambda value: wording.ended(f"Your {subject} is {value or 'unknown'}")


def _assign(table: pa.Table, population: Population) -> _Roles:
    """Gives each column its place. A second column for a place that is taken goes to the rest."""
    roles = _Roles()
    places: list[tuple[int, _Said]] = []
    singles = {
        "age": wording.AGE,
        "gender": wording.GENDER,
        "occupation": wording.OCCUPATION,
        "education": wording.EDUCATION,
        "income": wording.INCOME,
    }
    areas = (wording.CITY, wording.REGION, wording.COUNTRY)
    for name in population.attributes:
        said = _say(name, table, population)
        known = said.name.lower()
        role = next((role for role, names in singles.items() if known in names), None)
        size = next((i for i, names in enumerate(areas) if known in names), None)
        if role is not None and getattr(roles, role) is None and _fits(role, said.attribute):
            setattr(roles, role, said)
        elif size is not None and size not in dict(places) and _fits("place", said.attribute):
            places.append((size, said))
        else:
            roles.rest.append(said)
    roles.places = [said for _, said in sorted(places, key=lambda place: place[0])]
    return roles


def _say(name: str, table: pa.Table, population: Population) -> _Said:
    """Reads a column as words."""
    column: Any = table.column(name)
    attribute, said = population.attributes[name], wording.plain(name)
    if isinstance(attribute, Categories):
        array: Any = column.unify_dictionaries().combine_chunks()
        words = [wording.plain(value) for value in array.dictionary.to_pylist()]
        return _Said(said, array.indices, words, attribute)
    digits = 0
    if isinstance(attribute, Real):
        numbers = column.to_numpy()
        completed = said.lower() in wording.AGE
        digits = 0 if completed else wording.decimals(attribute)
        rounded = np.floor(numbers) if completed else np.round(numbers, digits)
        column = pa.chunked_array([pa.array(rounded + 0.0)])  # + 0.0: no "-0.00"
    array = column.combine_chunks().dictionary_encode()
    words = [f"{value:.{digits}f}" for value in array.dictionary.to_pylist()]
    return _Said(said, array.indices, words, attribute)


def _fits(role: str, attribute: Attribute) -> bool:
    """Whether every value can be said in the place that the attribute's name asks for."""
    if role == "age":
        if isinstance(attribute, Categories):
            return False
        ages = attribute.integer if isinstance(attribute, Integer) else attribute.real
        return edges_of(ages)[0] >= 0
    if role == "income":
        return True
    if not isinstance(attribute, Categories):
        return False
    values = [wording.plain(value) for value in attribute.categories]
    if role == "occupation":
        return all(
            wording.names_a_person(v) or v.lower() in wording.STATUS_ADJECTIVES for v in values
        )
    if role == "place":
        return all(wording.is_proper(value) for value in values)
    return all(values)


def _means(education: _Said | None, income: _Said | None) -> list[pa.Array[Any]]:
    if education is None or income is None:
        return [
            said.phrase(_sentence(subject))
            for said, subject in ((education, "level of education"), (income, "income"))
            if said is not None
        ]
    return [
        education.phrase(lambda value: f"Your level of education is {value}"),
        income.phrase(lambda value: wording.ended(f" and your income is {value or 'unknown'}")),
    ]


def _opening(
    age: _Said | None, gender: _Said | None, occupation: _Said | None, n: int
) -> list[pa.Array[Any]]:
    """`You are a 41-year-old female farmer. `, in pieces.

    Gender and occupation decide together what can be said, so each of their combinations is
    worded once.
    """
    genders = gender.values if gender else [""]
    jobs = occupation.values if occupation else [""]
    zeros = pa.array(np.zeros(n, dtype=np.int32))
    pair = pc.add(
        pc.multiply(pc.cast(gender.codes if gender else zeros, pa.int64()), len(jobs)),
        pc.cast(occupation.codes if occupation else zeros, pa.int64()),
    )
    wordings = [_who(g, j, aged=age is not None) for g in genders for j in jobs]
    tail = pa.array([words for words, _ in wordings], type=pa.string()).take(pair)
    if age is None:
        return [tail]
    counted = pa.array([is_noun for _, is_noun in wordings], type=pa.bool_()).take(pair)
    noun = age.phrase(lambda value: f"You are {wording.article(value)} {value}-year-old ")
    years = age.phrase(lambda value: f"You are {value} year{'' if value == '1' else 's'} old")
    return [pc.if_else(counted, noun, years), tail]


def _who(gender: str, job: str, *, aged: bool) -> tuple[str, bool]:
    """What follows the age, and whether it has a noun for the age to stand before.

    Without an age the text is the whole sentence.
    """
    adjectives, after = [], ""
    noun = job if job and job.lower() not in wording.STATUS_ADJECTIVES else ""
    if job and not noun:
        adjectives.append(job)
    if gender.lower() in wording.GENDER_NOUNS:
        after = f" and {wording.article(noun)} {noun}" if noun else ""
        noun = gender
    elif gender.lower() in wording.GENDER_ADJECTIVES:
        adjectives.insert(0, gender)
    elif gender:
        after = f". Your gender is {gender}"
    if noun:
        text = " ".join([*adjectives, noun]) + after + ". "
        return (text if aged else f"You are {wording.article(text)} {text}"), True
    if aged:
        return "".join(f"{_glue(i, adjectives)}{a}" for i, a in enumerate(adjectives)) + (
            after + ". "
        ), False
    if adjectives:
        return f"You are {' and '.join(adjectives)}{after}. ", False
    return after.removeprefix(". ") + (". " if after else ""), False


def _glue(i: int, adjectives: list[str]) -> str:
    return " and " if i == len(adjectives) - 1 else ", "
