"""The run directory: where everything about one run lies."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from agentsim.errors import ResultsError
from agentsim.results.storage import failure

TABLES = ("actions", "requests", "announcements")
SWEEP = "sweep.json"
"""What a sweep's directory has in place of a run's manifest."""


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Paths of one run.

    Attributes:
        path: the directory.
    """

    path: Path

    @classmethod
    def create(cls, path: Path) -> RunDirectory:
        """Make a directory for a new run, and its parents.

        Raises:
            ResultsError: it exists (a run is never overwritten), or cannot be made.
        """
        directory = cls(path)
        try:
            path.mkdir(parents=True)
            for name in TABLES:
                directory.table(name).mkdir()
            directory.logs.mkdir()
        except FileExistsError as error:
            if path.is_dir():
                message = f"{path}: exists already; a run's directory is never overwritten"
                raise ResultsError(message) from None
            raise failure(path, "cannot make the run's directory", error) from error
        except OSError as error:
            raise failure(path, "cannot make the run's directory", error) from error
        return directory

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """The directory of a run that was begun before.

        Raises:
            ResultsError: there is no run at this path.
        """
        directory = cls(path)
        try:
            if not path.is_dir():
                what = "is not a directory" if path.exists() else "does not exist"
                raise ResultsError(f"{path}: no run is here: it {what}")
            if (path / SWEEP).exists():
                raise ResultsError(
                    f"{path}: a sweep is here, and one run is needed: one of {path / 'cells'}"
                )
            if not directory.journal.exists() and not directory.manifest.exists():
                raise ResultsError(
                    f"{path}: no run is here: neither {directory.manifest.name} nor "
                    f"{directory.journal.name} is in it"
                )
        except OSError as error:
            raise failure(path, "cannot read the run's directory", error) from error
        return directory

    @property
    def manifest(self) -> Path:
        """What was run, with what: JSON."""
        return self.path / "manifest.json"

    @property
    def journal(self) -> Path:
        """The durable log; everything else but the manifest can be made from it again."""
        return self.path / "journal.log"

    @property
    def personas(self) -> Path:
        """Attributes and background texts of the agents."""
        return self.path / "personas.parquet"

    @property
    def actions(self) -> Path:
        """Directory of Parquet files, one row for each (session, round, agent)."""
        return self.table("actions")

    @property
    def requests(self) -> Path:
        """Directory of Parquet files, one row for each attempt of a language model."""
        return self.table("requests")

    @property
    def announcements(self) -> Path:
        """Directory of Parquet files, one row for each (session, round)."""
        return self.table("announcements")

    @property
    def summary(self) -> Path:
        """Counts and statistics: JSON."""
        return self.path / "summary.json"

    @property
    def logs(self) -> Path:
        """Directory of the programs' logs."""
        return self.path / "logs"

    def table(self, name: str) -> Path:
        """Directory of the table of this name, one of `TABLES`."""
        return self.path / name


def default_path(name: str, now: datetime, *, root: Path = Path("runs")) -> Path:
    """A directory for a new run of a scenario: `runs/<name>-<time>-<id>`.

    Args:
        name: the scenario's name.
        now: local time; written as 20261129-231900.
        root: directory of all runs.
    """
    return root / f"{name}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
