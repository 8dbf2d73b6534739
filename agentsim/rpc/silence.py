"""What silence means: pure judgement of one peer after the other, by how long it says nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

# Signs of life come each half second; one that is later than this is worth a word.
_LATE_S = 2.0


class State(StrEnum):
    """How a peer is: `busy` is late with its sign of life, `frozen` is silent and waited for."""

    HEALTHY = "healthy"
    BUSY = "busy"
    FROZEN = "frozen"
    LOST = "lost"


class News(StrEnum):
    """What is to be told of a peer."""

    SILENT = "silent"
    BACK = "back"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Silence:
    """How long a peer may be silent.

    Attributes:
        notice_s: after which the user is told. What is known of a worker is up to half a second
            old, so that half a second less than 5 s gives the user the news within 5 s.
        grace_s: after the notice, until it counts as lost.
    """

    notice_s: float = 4.5
    grace_s: float = 30.0


@dataclass(slots=True)
class Watched:
    """One peer, a node or a worker.

    Attributes:
        silent_s: since its last sign of life, as last seen.
        state: as last judged.
        longest_s: of the silence that goes on, or has just ended.
    """

    silent_s: float = 0.0
    state: State = State.HEALTHY
    longest_s: float = 0.0

    def judge(self, silent_s: float, allowed: Silence) -> News | None:
        """Take a new look; what is news is said once."""
        if self.state is State.LOST:
            return None
        self.silent_s = silent_s
        before, self.state = self.state, _state(silent_s, allowed)
        if self.state is State.LOST:
            self.longest_s = silent_s
            return News.LOST
        if self.state is State.FROZEN:
            self.longest_s = silent_s
            return None if before is State.FROZEN else News.SILENT
        return News.BACK if before is State.FROZEN else None


def _state(silent_s: float, allowed: Silence) -> State:
    if silent_s > allowed.notice_s + allowed.grace_s:
        return State.LOST
    if silent_s >= allowed.notice_s:
        return State.FROZEN
    return State.BUSY if silent_s >= min(_LATE_S, allowed.notice_s) else State.HEALTHY
