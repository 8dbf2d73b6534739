"""The file that holds every session's people: written once, read in slices by the workers."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from agentsim.config.made import (
    AGENTS,
    DIGEST,
    POPULATION,
    SEED,
    SESSIONS,
    MadePersonas,
)
from agentsim.config.population import Categories, Integer, Population
from agentsim.errors import ResultsError
from agentsim.population.backgrounds import backgrounds
from agentsim.population.distributions import check
from agentsim.population.sampling import sample
from agentsim.population.writer import Written
from agentsim.results.storage import failure

_GROUP_ROWS = 131_072
_SMALL_GROUP_ROWS = 4_096
_NAMES = pa.dictionary(pa.int32(), pa.string())
_PROFILE = pa.struct(
    [("name", pa.string()), ("age", pa.int16()), ("gender", pa.string()), ("job", pa.string())]
)
_Parts = Callable[[int], Iterator[pa.Table]]


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
    written: Sequence[Written] | None = None,
) -> None:
    """Draws and describes everybody, session by session, into one Parquet file.

    Columns: session int32 (from 1), agent int32 (from 0), each attribute as `sample` returns it,
    background string; sorted by session and agent. Where a model has written, also: writer
    (`model` or `template`), attempts int16, profile (a struct of name, age, gender and job as the
    model wrote them; null from the template) and checks (a struct with `stated`, `absent`,
    `contradicted` or `unchecked` for each attribute, of the last text that could be read).

    The file appears whole or not at all. Memory is bounded by one session. A run without a
    population has no such file: do not call this.

    Large sessions have row groups of 131,072 rows, small ones share row groups of about 4,096
    rows; where an agent's row is follows from `agents` alone, which the metadata tell beside
    sessions, seed, the population and its digest.

    Args:
        path: where.
        population: who is drawn.
        agents: of each session.
        sessions: how many.
        seed: the scenario's.
        written: what the model made of each person, in order of session and agent; None where
            the template writes everybody.

    Raises:
        UserError: an attribute has a reserved name.
        ResultsError: the file cannot be written, e.g. because the disk is full.
    """
    check(population)
    fields = _fields(population, by_model=written is not None)

    def parts(session: int) -> Iterator[pa.Table]:
        people = sample(population, agents, seed=seed, session=session)
        for first in range(0, agents, _GROUP_ROWS):
            part = people.slice(first, _GROUP_ROWS)
            start = (session - 1) * agents + first
            of_part = None if written is None else written[start : start + len(part)]
            yield _finish(part, population, (session, first), of_part)

    _write_whole(
        Path(path),
        _groups(parts, agents, sessions),
        pa.schema(fields, metadata=_metadata(population, agents, sessions, seed)),
    )


def copy_personas(
    path: str | os.PathLike[str], made: MadePersonas, *, agents: int, sessions: int
) -> None:
    """Takes people who were made before into a run's file: session s has the rows of `made` from
    (s − 1) × agents on, in its order. See `write_personas` for what is written.

    Raises:
        ResultsError: the file that was made cannot be read, or the new one cannot be written.
    """
    try:
        schema = pq.read_schema(made.path)
    except (OSError, pa.ArrowException) as error:
        raise ResultsError(f"cannot read the personas in {made.path}: {error}") from error

    def parts(session: int) -> Iterator[pa.Table]:
        first = (session - 1) * agents
        taken = 0
        while taken < agents:
            inside, row = divmod(first + taken, made.agents)
            count = min(agents - taken, made.agents - row, _GROUP_ROWS - taken % _GROUP_ROWS)
            table = read_personas(made.path, session=inside + 1, first=row, count=count)
            yield _numbered(table, session, taken)
            taken += count

    _write_whole(
        Path(path),
        _groups(parts, agents, sessions),
        schema.with_metadata(_metadata(made.population, agents, sessions, made.seed)),
    )


def _write_whole(path: Path, groups: Iterator[pa.Table], schema: pa.Schema) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as file:
            _write(file, groups, schema)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise failure(path, "cannot write the personas", error) from error
    except pa.ArrowException as error:
        raise ResultsError(f"cannot write the personas to {path}: {error}") from error
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()


def _metadata(
    population: Population, agents: int, sessions: int, seed: int
) -> dict[bytes | str, bytes | str]:
    return {
        AGENTS: b"%d" % agents,
        SESSIONS: b"%d" % sessions,
        SEED: b"%d" % seed,
        DIGEST: digest(population).encode(),
        POPULATION: population.model_dump_json().encode(),
    }


def _fields(population: Population, *, by_model: bool) -> list[Any]:
    fields: list[Any] = [("session", pa.int32()), ("agent", pa.int32())]
    for name, attribute in population.attributes.items():
        if isinstance(attribute, Categories):
            fields.append((name, _NAMES))
        else:
            fields.append((name, pa.int64() if isinstance(attribute, Integer) else pa.float64()))
    fields.append(("background", pa.string()))
    if by_model:
        fields += [
            ("writer", _NAMES),
            ("attempts", pa.int16()),
            ("profile", _PROFILE),
            ("checks", pa.struct([(name, pa.string()) for name in population.attributes])),
        ]
    return fields


def _write(file: BinaryIO, groups: Iterator[pa.Table], schema: pa.Schema) -> None:
    with pq.ParquetWriter(
        file, schema, compression="zstd", write_statistics=["session", "agent"]
    ) as writer:
        for group in groups:
            writer.write_table(
                group.replace_schema_metadata(schema.metadata), row_group_size=_GROUP_ROWS
            )


def _groups(parts: _Parts, agents: int, sessions: int) -> Iterator[pa.Table]:
    """One table a row group.

    Args:
        parts: gives the people of a session in pieces; a row group of a large session is one
            piece, or several that end where it ends.
    """
    together = _sessions_in_group(agents)
    for first in range(1, sessions + 1, together):
        group = range(first, min(first + together, sessions + 1))
        if together > 1:
            yield pa.concat_tables(part for session in group for part in parts(session))
            continue
        waiting: list[pa.Table] = []
        for part in parts(first):
            waiting.append(part)
            if sum(map(len, waiting)) == _GROUP_ROWS:
                yield pa.concat_tables(waiting)
                waiting = []
        if waiting:
            yield pa.concat_tables(waiting)


def _finish(
    people: pa.Table,
    population: Population,
    place: tuple[int, int],
    written: Sequence[Written] | None,
) -> pa.Table:
    """The people of a part with all their columns; `place` is their session and first agent."""
    told = backgrounds(people, population)
    columns: dict[str, Any] = {name: people.column(name) for name in people.column_names}
    if written is None:
        columns["background"] = told
    else:
        texts = [str(text) for text in told.to_pylist()]
        columns |= _columns(written, texts, list(population.attributes))
    return _numbered(pa.table(columns), *place)


def _columns(
    written: Sequence[Written], told: Sequence[str], attributes: Sequence[str]
) -> dict[str, Any]:
    """What a model has made of people; the template's text stands for those it has not."""
    drafts = [item.draft for item in written]
    profiles = [
        None if d is None else {"name": d.name, "age": d.age, "gender": d.gender, "job": d.job}
        for d in drafts
    ]
    pairs = zip(drafts, told, strict=True)
    writers = pa.array([item.writer for item in written], pa.string())
    verdicts = [item.checks and dict(item.checks) for item in written]
    return {
        "background": pa.array([text if d is None else d.background for d, text in pairs]),
        "writer": writers.dictionary_encode(),
        "attempts": pa.array([item.attempts for item in written], pa.int16()),
        "profile": pa.array(profiles, _PROFILE),
        "checks": pa.array(verdicts, pa.struct([(name, pa.string()) for name in attributes])),
    }


def _numbered(table: pa.Table, session: int, first: int) -> pa.Table:
    """The rows as the agents of a session, from the first on."""
    n = len(table)
    columns: dict[str, Any] = {
        "session": pa.array(np.full(n, session, dtype=np.int32)),
        "agent": pa.array(np.arange(first, first + n, dtype=np.int32)),
    }
    columns |= {name: table.column(name) for name in table.column_names if name not in columns}
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
            if AGENTS not in metadata or SESSIONS not in metadata:
                raise ResultsError(f"{path} is not a file of personas")
            agents, sessions = int(metadata[AGENTS]), int(metadata[SESSIONS])
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
