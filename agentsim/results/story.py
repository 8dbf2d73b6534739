"""What happened to a run over all its starts, from the frames of its journal that say so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from agentsim.errors import ResultsError
from agentsim.results.directory import RunDirectory
from agentsim.results.framing import Kind, frames
from agentsim.results.records import Event, RunEnd, from_json


@dataclass(slots=True)
class Story:
    """A run over all its starts.

    Attributes:
        starts: how often it was begun or gone on with.
        wall_s, cpu_s: of the starts that said how they ended; None when none did. One that was
            killed says nothing.
        events: how many of each kind of event.
    """

    starts: int = 0
    wall_s: float | None = None
    cpu_s: float | None = None
    events: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        """The counts, for the summary."""
        return {
            "starts": self.starts,
            "resumes": max(0, self.starts - 1),
            "restarts": self.events["restarted"],
            "moves": self.events["moved"],
            "stale": self.events["stale"],
            "disk_full": self.events["disk_full"],
        }


def story(directory: RunDirectory) -> Story:
    """Read what happened to a run.

    Raises:
        ResultsError: the journal cannot be read.
    """
    told = Story()
    for frame in frames(directory.journal, only=(Kind.RUN, Kind.END, Kind.EVENT)):
        try:
            if frame.kind is Kind.RUN:
                told.starts += 1
            elif frame.kind is Kind.EVENT:
                told.events[from_json(frame.body, Event).kind] += 1
            else:
                end = from_json(frame.body, RunEnd)
                told.wall_s = _sum(told.wall_s, end.wall_s)
                told.cpu_s = _sum(told.cpu_s, end.cpu_s)
        except msgspec.DecodeError as error:
            raise ResultsError(
                f"{directory.journal}: the record at byte {frame.offset} does not make sense: "
                f"{error}"
            ) from error
    return told


def _sum(one: float | None, other: float | None) -> float | None:
    return other if one is None else one + (other or 0.0)
