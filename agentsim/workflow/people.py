"""The personas of one session."""

from __future__ import annotations

from pathlib import Path

from agentsim.chat import Persona
from agentsim.population import attribute_names, read_personas


def read_people(path: Path, *, session: int, agents: int) -> list[Persona]:
    """All personas of a session, in order of agents; numbers alone where there is no file.

    Args:
        path: from `write_personas`.
        session: from 1.
        agents: in each session.

    Raises:
        ResultsError: the file cannot be read.
    """
    if not path.exists():
        return [Persona(agent) for agent in range(agents)]
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
