"""The error tree. Foreign exceptions are translated into it at the border where they occur.

AgentsimError
├── UserError            the user's mistake: exit 2, no traceback, nothing was started
│   ├── ConfigError      findings in the scenario, population or hostfile
│   └── MissingPackage   an optional part is not installed; the message has the install line
└── RunError             the run's failure: exit 1, no traceback
    ├── LaunchError      a node, worker or model server did not start
    ├── PeerLost         a node or worker that was running is gone
    ├── ModelError       a model endpoint cannot be used at all
    ├── LimitReached     a limit of the scenario ended the run
    ├── WorkflowFailed   the user's own function raised; the message has its traceback
    └── ResultsError     the run directory cannot be written or read
        └── DiskFull     there is no room: worth waiting for

Anything else that reaches the command line is a bug of ours: exit 70, with where the log is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class AgentsimError(Exception):
    """Base of every error that agentsim raises on purpose.

    Attributes:
        exit_code: what the command line exits with.
    """

    exit_code = 1


class UserError(AgentsimError):
    """Something the user gave is wrong; nothing was started."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that a finding is about, perhaps in another file.

    Attributes:
        note: what is there, in a few words.
        file, line, column, length, source: as of a `Finding`.
    """

    note: str
    file: str
    line: int = 0
    column: int = 0
    length: int = 1
    source: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong in a file, as data.

    Attributes:
        code: stable kebab-case name of the kind of finding, e.g. `unknown-key`.
        message: what was found, one sentence, never with the value of a secret.
        file: the file as the user named it, or the flag (`--set`) that brought the value in.
        line: from 1; 0 when the finding has no place in a file.
        column: from 1, in characters.
        length: how many characters the carets cover, at least 1.
        source: the source line, without its line end; empty when there is none.
        expected: what would be right there, in YAML words; may be empty.
        hint: one suggestion; may be empty.
        related: other places, for what cannot be said of one place alone.
    """

    code: str
    message: str
    file: str
    line: int = 0
    column: int = 0
    length: int = 1
    source: str = ""
    expected: str = ""
    hint: str = ""
    related: tuple[Related, ...] = ()


class ConfigError(UserError):
    """One or more findings in the files that describe a run, sorted by file and place."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("; ".join(f"{f.file}:{f.line}:{f.column}: {f.message}" for f in findings))
        self.findings = findings


class MissingPackage(UserError):
    """An optional package is not installed.

    Args:
        purpose: what needs it, e.g. `backend llama_cpp`.
        install: the exact command that installs it.
    """

    def __init__(self, purpose: str, install: str) -> None:
        super().__init__(f"{purpose} needs a package that is not installed; run: {install}")
        self.install = install


class RunError(AgentsimError):
    """The run failed; what was completed is in its directory."""


class LaunchError(RunError):
    """A node, worker or model server did not start."""


class PeerLost(RunError):
    """A node or worker that was running is gone.

    The message names what was lost, its host, the last heartbeat, its log and the next step.

    Attributes:
        workers: indices of the workers that are gone with it.
    """

    def __init__(self, message: str, workers: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.workers = workers


class ModelError(RunError):
    """A model endpoint cannot be used at all, e.g. a wrong key or an unknown model name."""


class LimitReached(RunError):
    """A limit of the scenario (tokens, wall time, missing share) ended the run."""


class WorkflowFailed(RunError):
    """The user's own function raised; the message has its traceback, without our frames."""


class ResultsError(RunError):
    """The run directory cannot be written or read."""


class DiskFull(ResultsError):
    """There is no room on the disk, or the user's quota is used up: trying again later may do.

    Attributes:
        folder: where room is wanted.
        quota: whether it is a quota that is used up; how much of it is free cannot be told.
    """

    def __init__(self, message: str, folder: Path, *, quota: bool = False) -> None:
        super().__init__(message)
        self.folder = folder
        self.quota = quota
