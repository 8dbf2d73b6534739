"""Files of personas that were made before: what a scenario may take in place of a population."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from agentsim.config.files import Unreadable, opened, shown
from agentsim.config.population import Population
from agentsim.errors import Finding

SUFFIX = ".parquet"
"""What the name of such a file ends in; every other name is that of a population file."""
AGENTS = b"agentsim.agents"
SESSIONS = b"agentsim.sessions"
SEED = b"agentsim.seed"
DIGEST = b"agentsim.population"
POPULATION = b"agentsim.population_json"
"""Keys of the file's metadata."""

_EXPECTED = "a file of `agentsim personas`, or the personas.parquet of a run"


@dataclass(frozen=True, slots=True)
class MadePersonas:
    """A file of personas, as its metadata describe it.

    Attributes:
        path: where it is.
        agents: personas in each of its sessions.
        sessions: how many.
        seed: what they were drawn with.
        population: what they were drawn from.
    """

    path: Path
    agents: int
    sessions: int
    seed: int
    population: Population

    @property
    def people(self) -> int:
        """Personas over all its sessions."""
        return self.agents * self.sessions


def read_made(path: str, name: str) -> MadePersonas:
    """What the metadata of a file of personas say; nobody's row is read.

    Args:
        path: where the file is.
        name: how findings call it.

    Raises:
        Unreadable: there is no such file, or it holds something else.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with opened(path, name) as file:
        try:
            metadata = pq.read_schema(file).metadata or {}
            return MadePersonas(
                path=Path(os.path.realpath(path)),
                agents=int(metadata[AGENTS]),
                sessions=int(metadata[SESSIONS]),
                seed=int(metadata[SEED]),
                population=Population.model_validate_json(metadata[POPULATION], strict=True),
            )
        except (KeyError, pa.ArrowException, ValidationError):
            problem = f"{shown(name)} is not a file of personas of this version"
            finding = Finding("bad-value", problem, name, expected=_EXPECTED)
            raise Unreadable(finding, inside=False) from None
