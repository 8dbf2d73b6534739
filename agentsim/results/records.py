"""What the journal's first and last records say. Attempts, answers and settlements are wire types.

Both are JSON, so that a person can read them with `strings`.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

State = Literal["finished", "failed", "interrupted"]


class RunStart(Struct, frozen=True):
    """A run began, or went on after it was interrupted.

    Attributes:
        run_id: the same in all records of a run.
        agents, sessions, rounds: how many, as the scenario says; no rounds: a user's program.
        model: what the column `model` of the actions says, e.g. `smollm2-135m-instruct`.
        started: UTC, ISO 8601.
    """

    run_id: str
    agents: int
    sessions: int
    rounds: int
    model: str
    started: str


class RunEnd(Struct, frozen=True):
    """How a run ended.

    Attributes:
        state: finished, failed or interrupted.
        reason: why it did not finish, one line; empty when it did.
        wall_s: from the first round's start to the end, this incarnation's only.
        cpu_s: of all processes of the run, as far as known; None when not.
        ended: UTC, ISO 8601.
    """

    state: State
    reason: str = ""
    wall_s: float | None = None
    cpu_s: float | None = None
    ended: str = ""


_Record = TypeVar("_Record", RunStart, RunEnd)


def to_json(record: RunStart | RunEnd) -> bytes:
    """The body of a RUN or END frame."""
    return msgspec.json.encode(record)


def from_json(body: bytes, type: type[_Record]) -> _Record:
    """The record in the body of a RUN or END frame.

    Raises:
        msgspec.DecodeError: the body is not such a record.
    """
    return msgspec.json.decode(body, type=type)
