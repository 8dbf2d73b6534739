"""Facts: a person's attributes as they are told to whoever writes about the person."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from agentsim.config.population import Attribute, Categories, Population, Real
from agentsim.population import wording

Role = Literal["age", "gender", "job", "other"]
_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Fact:
    """One attribute of one person.

    Attributes:
        name: the attribute's.
        value: as it is told: a category with its underscores as spaces, a whole number, or a real
            number rounded as the template rounds it.
        attribute: what the population says of it.
        role: which part of a written persona repeats it.
    """

    name: str
    value: str | int | float
    attribute: Attribute
    role: Role


def facts_of(table: pa.Table, population: Population) -> Iterator[tuple[Fact, ...]]:
    """The facts of each person, in the table's order.

    Args:
        table: from `sample`, or any slice of it.
        population: what the table was drawn from.
    """
    roles = roles_of(population)
    for start in range(0, len(table), _ROWS):
        for row in table.slice(start, _ROWS).to_pylist():
            yield tuple(
                Fact(name, _told(row[name], attribute, roles[name]), attribute, roles[name])
                for name, attribute in population.attributes.items()
            )


def roles_of(population: Population) -> dict[str, Role]:
    """The role of each attribute; a second one for a role that is taken has none."""
    roles: dict[str, Role] = {}
    for name, attribute in population.attributes.items():
        role = _role(wording.plain(name).lower(), attribute)
        roles[name] = "other" if role in roles.values() else role
    return roles


def _role(known: str, attribute: Attribute) -> Role:
    if known in wording.AGE and not isinstance(attribute, Categories):
        return "age"
    if isinstance(attribute, Categories):
        if known in wording.GENDER:
            return "gender"
        if known in wording.OCCUPATION:
            return "job"
    return "other"


def _told(value: str | int | float, attribute: Attribute, role: Role) -> str | int | float:
    if isinstance(value, str):
        return wording.plain(value)
    if not isinstance(attribute, Real):
        return value
    if role == "age":  # completed years, as the template says it
        return math.floor(value)
    digits = wording.decimals(attribute)
    return round(value) if digits == 0 else round(value, digits) + 0.0
