"""What the journal says of the run itself. Attempts, answers and settlements are wire types.

These are JSON, so that a person can read them with `strings`.
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
        wall_s: from the start to the end, of this start alone.
        cpu_s: of all processes of the run, as far as known; None when not.
        ended: UTC, ISO 8601.
    """

    state: State
    reason: str = ""
    wall_s: float | None = None
    cpu_s: float | None = None
    ended: str = ""


EventKind = Literal["resumed", "restarted", "moved", "lost", "stale", "disk_full", "room"]


class Event(Struct, frozen=True):
    """Something that happened to a run and changes no result.

    Attributes:
        kind: `resumed`: the run went on; `lost`: a worker or node is gone; `restarted`: a worker's
            agents go on in a new worker of the same host; `moved`: on another host; `stale`: what a
            lost worker still sent was dropped; `disk_full`, `room`: the disk, and again.
        text: what happened, for people; one line.
        worker: whom it is about; None: the whole run.
        tokens: that were used and belong to no attempt in the journal.
        at: UTC, ISO 8601.
    """

    kind: EventKind
    text: str
    worker: int | None = None
    tokens: int = 0
    at: str = ""


_Record = TypeVar("_Record", RunStart, RunEnd, Event)


def to_json(record: RunStart | RunEnd | Event) -> bytes:
    """The body of a RUN, END or EVENT frame."""
    return msgspec.json.encode(record)


def from_json(body: bytes, type: type[_Record]) -> _Record:
    """The record in the body of a RUN, END or EVENT frame.

    Raises:
        msgspec.DecodeError: the body is not such a record.
    """
    return msgspec.json.decode(body, type=type)
