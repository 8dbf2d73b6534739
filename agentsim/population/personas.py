"""The file that holds every session's people: written once, read in slices by the workers."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agentsim.config.population import Categories, Integer, Population
from agentsim.errors import ResultsError
from agentsim.population.backgrounds import backgrounds
from agentsim.population.distributions import check
from agentsim.population.sampling import sample

_GROUP_ROWS = 131_072
_SMALL_GROUP_ROWS = 4_096
_AGENTS = b"agentsim.agents"
_SESSIONS = b"agentsim.sessions"
_SEED = b"agentsim.seed"
_DIGEST = b"agentsim.population"


def digest(population: Population) -> str:
    """SHA-256, in hexadecimal, of what a population says; comments and layout do not count."""
    return hashlib.sha256(population.model_dump_json().encode()).hexdigest()


def write_personas(
    path: str | os.PathLike[str],
    population: Population,
    *,
    agents: int,
    sessions: int,
    seed: int,
) -> None:
    """Draws and describes everybody, session by session, into one Parquet file.

    Columns: session int32 (from 1), agent int32 (from 0), each attribute as `sample` returns it,
    background string; sorted by session and agent. The file appears whole or not at all. Memory
    is bounded by one session. A run without a population has no such file: do not call this.

    Large sessions have row groups of 131,072 rows, small ones share row groups of about 4,096
    rows; where an agent's row is follows from `agents` alone, which the metadata tell beside
    sessions, seed and the population's digest.

    Raises:
        UserError: an attribute has a reserved name.
        ResultsError: the file cannot be written, e.g. because the disk is full.
    """
    check(population)
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as file:
            _write(
                file,
                _groups(population, agents, sessions, seed),
                _schema(
                    population,
                    {
                        _AGENTS: b"%d" % agents,
                        _SESSIONS: b"%d" % sessions,
                        _SEED: b"%d" % seed,
                        _DIGEST: digest(population).encode(),
                    },
                ),
            )
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except (OSError, pa.ArrowException) as error:
        raise ResultsError(f"cannot write the personas to {path}: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()


def _schema(population: Population, metadata: dict[bytes | str, bytes | str]) -> pa.Schema:
    fields: list[Any] = [("session", pa.int32()), ("agent", pa.int32())]
    for name, attribute in population.attributes.items():
        if isinstance(attribute, Categories):
            fields.append((name, pa.dictionary(pa.int32(), pa.string())))
        else:
            fields.append((name, pa.int64() if isinstance(attribute, Integer) else pa.float64()))
    fields.append(("background", pa.string()))
    return pa.schema(fields, metadata=metadata)


def _write(file: BinaryIO, groups: Iterator[pa.Table], schema: pa.Schema) -> None:
    with pq.ParquetWriter(
        file, schema, compression="zstd", write_statistics=["session", "agent"]
    ) as writer:
        for group in groups:
            writer.write_table(
                group.replace_schema_metadata(schema.metadata), row_group_size=_GROUP_ROWS
            )


def _groups(population: Population, agents: int, sessions: int, seed: int) -> Iterator[pa.Table]:
    """One table a row group."""
    together = _sessions_in_group(agents)
    for first in range(1, sessions + 1, together):
        group = range(first, min(first + together, sessions + 1))
        parts = (part for session in group for part in _parts(population, agents, session, seed))
        if together > 1:
            yield pa.concat_tables(parts).combine_chunks()
        else:
            yield from parts


def _parts(population: Population, agents: int, session: int, seed: int) -> Iterator[pa.Table]:
    """One session's people, at most a row group at a time."""
    people = sample(population, agents, seed=seed, session=session)
    for start in range(0, agents, _GROUP_ROWS):
        yield _finish(people.slice(start, _GROUP_ROWS), population, session, start)


def _finish(people: pa.Table, population: Population, session: int, first: int) -> pa.Table:
    n = len(people)
    columns: dict[str, Any] = {
        "session": np.full(n, session, dtype=np.int32),
        "agent": np.arange(first, first + n, dtype=np.int32),
        **{name: people.column(name) for name in people.column_names},
        "background": backgrounds(people, population),
    }
    return pa.table(columns)


def _sessions_in_group(agents: int) -> int:
    return max(1, _SMALL_GROUP_ROWS // agents)


def read_personas(
    path: str | os.PathLike[str],
    *,
    session: int,
    first: int = 0,
    count: int | None = None,
    columns: list[str] | None = None,
) -> pa.Table:
    """Reads the agents `first` to `first + count - 1` of one session, and little else.

    Args:
        path: from `write_personas`.
        session: from 1.
        first: number of the first agent.
        count: how many; None for all from `first` on.
        columns: names of the columns to read; None for all.

    Returns:
        `count` rows in agent order.

    Raises:
        ResultsError: the file cannot be read, is not a personas' file, or has no such agents.
    """
    try:
        with pq.ParquetFile(Path(path)) as file:
            metadata = file.schema_arrow.metadata or {}
            if _AGENTS not in metadata or _SESSIONS not in metadata:
                raise ResultsError(f"{path} is not a file of personas")
            agents, sessions = int(metadata[_AGENTS]), int(metadata[_SESSIONS])
            count = agents - first if count is None else count
            if not (1 <= session <= sessions and 0 <= first <= first + count <= agents):
                raise ResultsError(
                    f"{path} has sessions 1 to {sessions} with agents 0 to {agents - 1}, and not "
                    f"agents {first} to {first + count - 1} of session {session}"
                )
            return _read(file, agents, session, range(first, first + count), columns)
    except (OSError, pa.ArrowException) as error:
        raise ResultsError(f"cannot read the personas in {path}: {error}") from error


def _read(
    file: pq.ParquetFile, agents: int, session: int, wanted: range, columns: list[str] | None
) -> pa.Table:
    together = _sessions_in_group(agents)
    if together > 1:
        groups = [(session - 1) // together]
        skip = (session - 1) % together * agents + wanted.start
    else:
        each = math.ceil(agents / _GROUP_ROWS)
        low, high = wanted.start // _GROUP_ROWS, max(wanted.stop - 1, wanted.start) // _GROUP_ROWS
        groups = [(session - 1) * each + i for i in range(low, min(high, each - 1) + 1)]
        skip = wanted.start - low * _GROUP_ROWS
    table = file.read_row_groups(groups, columns=columns)
    return table.slice(skip, len(wanted)).unify_dictionaries()
