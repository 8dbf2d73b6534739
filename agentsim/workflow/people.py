"""The personas of one session."""

from __future__ import annotations

from pathlib import Path

from agentsim.chat import Persona
from agentsim.population import read_personas

_NOT_ATTRIBUTES = ("session", "agent", "background")


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
    return [
        Persona(
            agent=row["agent"],
            attributes={k: v for k, v in row.items() if k not in _NOT_ATTRIBUTES},
            background=row["background"],
        )
        for row in read_personas(path, session=session).to_pylist()
    ]
