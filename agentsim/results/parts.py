"""The files of a table: in which order, how many, and replacing them all at once."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from agentsim.errors import ResultsError
from agentsim.ids import Round
from agentsim.results.directory import TABLES, RunDirectory
from agentsim.results.schema import SCHEMAS
from agentsim.results.storage import failure, sync_directory
from agentsim.results.tables import part_name, write_part

MANY_PARTS = 64
_PART_ROWS = 1_000_000
_SCRATCH = ".tables"
_NAME = re.compile(r"s(\d+)-r(\d+)(?:_s(\d+)-r(\d+))?\.parquet")


def parts(directory: RunDirectory, table: str) -> list[Path]:
    """The files of a table in order of their first session and round.

    Raises:
        ResultsError: the table's directory cannot be read.
    """
    path = directory.table(table)
    try:
        return sorted((f for f in path.iterdir() if _NAME.fullmatch(f.name)), key=part_of)
    except FileNotFoundError:
        # Copies of a run may leave out empty directories; but an empty table must not be shown
        # for one that is being replaced.
        if (directory.path / _SCRATCH).exists():
            raise ResultsError(
                f"{path}: the tables are being replaced; try again, and if that does not help, "
                "agentsim.results.rebuild makes them again from the journal"
            ) from None
        return []
    except OSError as error:
        raise failure(path, "cannot read the table", error) from error


def part_of(path: Path) -> tuple[Round, Round]:
    """The first and the last round of a file of `parts`, as its name says."""
    match = _NAME.fullmatch(path.name)
    assert match is not None
    session, round, last_session, last_round = match.groups()
    first = Round(int(session), int(round))
    return first, Round(int(last_session or session), int(last_round or round))


def read_part(path: Path, columns: list[str] | None = None) -> pa.Table:
    """The rows of one file.

    Raises:
        ResultsError: it cannot be read.
    """
    try:
        with pq.ParquetFile(path) as file:
            return file.read(columns)
    except (OSError, pa.ArrowException) as error:
        help = ""
        if path.parent.name in TABLES:
            help = "; agentsim.results.rebuild makes the tables again from the journal"
        raise ResultsError(f"{path}: cannot read the table: {error}{help}") from error


def table_rows(directory: RunDirectory, table: str) -> int:
    """Rows of a table.

    Raises:
        ResultsError: a file cannot be read.
    """
    return sum(_rows(path) for path in parts(directory, table))


def compact(directory: RunDirectory) -> None:
    """Merge the files of each table that has more than `MANY_PARTS` into files of a million rows.

    Readers see the old files or the new ones. Not for a run whose tables are being written.

    Raises:
        ResultsError: a file could not be read or written.
    """
    finish_replacing(directory)
    many = [table for table in TABLES if len(parts(directory, table)) > MANY_PARTS]
    if not many:
        return
    scratch = scratch_directory(directory)
    for table in many:
        for group in _groups(parts(directory, table)):
            name = part_name(part_of(group[0])[0], max(part_of(path)[1] for path in group))
            write_part(scratch.table(table) / name, SCHEMAS[table], map(read_part, group))
    replace_tables(directory, scratch, many)


def scratch_directory(directory: RunDirectory) -> RunDirectory:
    """An empty directory inside the run's, to write tables that `replace_tables` puts in place.

    Raises:
        ResultsError: it cannot be made.
    """
    path = directory.path / _SCRATCH
    try:
        if path.exists():
            shutil.rmtree(path)
        scratch = RunDirectory(path)
        for table in TABLES:
            scratch.table(table).mkdir(parents=True)
    except OSError as error:
        raise failure(path, "cannot make a directory", error) from error
    return scratch


def replace_tables(directory: RunDirectory, scratch: RunDirectory, tables: list[str]) -> None:
    """Put the tables of the scratch directory in place of the run's.

    A crash on the way loses nothing: `finish_replacing` goes on with it.

    Raises:
        ResultsError: a directory could not be renamed.
    """
    try:
        for table in tables:
            sync_files(scratch.table(table))
        for table in tables:
            if directory.table(table).exists():
                directory.table(table).rename(scratch.path / f"old-{table}")
            scratch.table(table).rename(directory.table(table))
        sync_directory(directory.path)
        shutil.rmtree(scratch.path)
    except OSError as error:
        raise failure(directory.path, "cannot replace the tables", error) from error


def finish_replacing(directory: RunDirectory) -> None:
    """Put in place what an interrupted `replace_tables` left beside.

    Raises:
        ResultsError: a directory could not be renamed.
    """
    scratch = RunDirectory(directory.path / _SCRATCH)
    if not scratch.path.exists():
        return
    try:
        for table in TABLES:
            if not directory.table(table).exists() and scratch.table(table).exists():
                scratch.table(table).rename(directory.table(table))
        shutil.rmtree(scratch.path)
    except OSError as error:
        raise failure(directory.path, "cannot replace the tables", error) from error


def sync_files(path: Path) -> None:
    """Force the files of a directory and its entries to disk."""
    for file in path.iterdir():
        fd = os.open(file, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    sync_directory(path)


def _groups(files: list[Path]) -> Iterator[list[Path]]:
    """Neighbours that together have about a million rows."""
    group: list[Path] = []
    rows = 0
    for path in files:
        group.append(path)
        rows += _rows(path)
        if rows >= _PART_ROWS:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _rows(path: Path) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException) as error:
        raise ResultsError(f"{path}: cannot read the table: {error}") from error
