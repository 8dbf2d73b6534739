"""Personas one by one, for users' programs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from agentsim.population.distributions import attribute_names
from agentsim.population.personas import read_personas


@dataclass(frozen=True, slots=True)
class Persona:
    """Who one agent is.

    Attributes:
        agent: number in its session, from 0.
        attributes: name → value; none without a population.
        background: the attributes as a text for a prompt; empty without a population.
    """

    agent: int
    attributes: dict[str, Any] = field(default_factory=dict)
    background: str = ""


def read_people(path: str | os.PathLike[str], *, session: int) -> list[Persona]:
    """All personas of one session, in order of agents.

    Args:
        path: from `write_personas`.
        session: from 1.

    Raises:
        ResultsError: as `read_personas`.
    """
    table = read_personas(path, session=session)
    names = attribute_names(table.column_names)
    return [
        Persona(
            agent=row["agent"],
            attributes={name: row[name] for name in names},
            background=row["background"],
        )
        for row in table.to_pylist()
    ]
