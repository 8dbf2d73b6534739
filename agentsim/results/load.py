"""A run that was recorded, as frames."""

from __future__ import annotations

from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from agentsim.errors import ResultsError
from agentsim.results.directory import TABLES, RunDirectory
from agentsim.results.manifest import read_manifest
from agentsim.results.parts import part_of, parts, read_part
from agentsim.results.schema import SCHEMAS
from agentsim.results.storage import read_json
from agentsim.results.summary import run_end, summarise
from agentsim.results.tally import column
from agentsim.results.workflow import table_names, table_path

if TYPE_CHECKING:
    import pandas as pd

_KEY = ("session", "round")


class Run:
    """What one run left, read when it is asked for and then kept.

    Attributes:
        path: its directory.
        state: finished, failed, interrupted or running, when the run was loaded.
    """

    def __init__(self, directory: RunDirectory) -> None:
        """Use `load_run`."""
        self._directory = directory
        self._tables: dict[str, pa.Table] = {}
        self.path = directory.path
        self.state, _ = run_end(directory)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, state={self.state!r})"

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """manifest.json: what was run, with what."""
        return read_manifest(self.path)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """summary.json; computed when the run has not written it."""
        if self.state == "finished" and self._directory.summary.exists():
            return read_json(self._directory.summary)
        return summarise(self._directory)

    @cached_property
    def actions(self) -> pd.DataFrame:
        """One row for each (session, round, agent): final actions of the settled rounds."""
        return self.table("actions").to_pandas()

    @cached_property
    def requests(self) -> pd.DataFrame:
        """One row for each attempt of a language model; no rows for scripted players."""
        return self.table("requests").to_pandas()

    @cached_property
    def announcements(self) -> pd.DataFrame:
        """One row for each (session, round) that is settled, and one for each of its groups."""
        return self.table("announcements").to_pandas()

    @cached_property
    def personas(self) -> pd.DataFrame:
        """One row for each (session, agent); no rows for a run without a population."""
        return self.table("personas").to_pandas()

    def table(self, name: str) -> pa.Table:
        """A table by name: actions, requests, announcements or personas, or one that a user's
        program recorded.

        Rows are in order of session and round; within them actions in order of agents, requests in
        order of arrival.

        Raises:
            ResultsError: there is no such table, or it cannot be read.
        """
        if name not in self._tables:
            self._tables[name] = self._read(name)
        return self._tables[name]

    def values(self, session: int, round: int) -> NDArray[np.float64]:
        """The final values of one settled round, without reading the others.

        Returns:
            `(n,)` float64 in order of agents; nan where there is no valid one.

        Raises:
            ResultsError: this round of this session is not settled.
        """
        for path in parts(self._directory, "actions"):
            first, last = part_of(path)
            if first <= (session, round) <= last:
                table = read_part(path, [*_KEY, "value"])
                wanted = _keys(table) == (session << 32) | round
                if wanted.any():
                    values: NDArray[np.float64] = column(table, "value")[wanted]
                    return values
        raise ResultsError(f"{self.path}: round {round} of session {session} is not settled")

    def _read(self, name: str) -> pa.Table:
        if name == "personas":
            path = self._directory.personas
            return read_part(path) if path.exists() else pa.table({})
        own = table_names(self._directory)
        if name in own:
            return read_part(table_path(self._directory, name))
        if name not in TABLES:
            names = ", ".join((*TABLES, "personas", *own))
            raise ResultsError(f"{self.path}: there is no table {name!r}; tables are {names}")
        tables = [read_part(path) for path in parts(self._directory, name)]
        if not tables:
            return SCHEMAS[name].empty_table()
        whole = pa.concat_tables(tables).unify_dictionaries()
        return whole if _in_order(whole) else whole.take(_order(whole))


def load_run(path: str | PathLike[str]) -> Run:
    """Open a run's directory for reading.

    A run that is still going, or did not finish, can be read too: `Run.state` says so.

    Args:
        path: the directory, e.g. `runs/guess-two-thirds-20261129-231900-a1b2c3`.

    Raises:
        ResultsError: no run is there.
    """
    return Run(RunDirectory.open(Path(path)))


def _keys(table: pa.Table) -> NDArray[np.int64]:
    session, round = (column(table, name).astype(np.int64) for name in _KEY)
    return np.asarray((session << 32) | round)


def _in_order(table: pa.Table) -> bool:
    keys = _keys(table)
    return bool(np.all(keys[1:] >= keys[:-1]))


def _order(table: pa.Table) -> NDArray[np.int64]:
    return np.argsort(_keys(table), kind="stable")
