"""Which call an agent may begin. Pure: no loop, no agent, no clock.

The rules:

- One call at a time, for agents that are not concurrent.
- Calls of one caller begin in the order in which that caller made them. A call whose arguments are
  not here yet holds up the later calls of its caller, and nobody else's: what it waits for may
  need this agent.
- Among those that may begin, the one that arrived first does.
- A call whose chain leads through the call that runs now is let in at once: the agent waits for it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Entry:
    """One call at an agent.

    Attributes:
        id: its number.
        lane: who made it, and on behalf of which call; order is kept within a lane.
        chain: the calls that led to it.
        missing: arguments that are not here yet.
    """

    id: int
    lane: int
    chain: frozenset[int]
    missing: int = 0
    arrived: int = 0


@dataclass(slots=True)
class Mailbox:
    """The calls of one agent.

    Attributes:
        running: numbers of the calls that have begun and not ended.
    """

    running: set[int] = field(default_factory=set)
    _lanes: dict[int, deque[Entry]] = field(default_factory=dict)
    _count: int = 0

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not self.running and not self._lanes

    def add(self, entry: Entry) -> None:
        """A call has arrived."""
        self._count += 1
        entry.arrived = self._count
        self._lanes.setdefault(entry.lane, deque()).append(entry)

    def next(self, *, concurrent: bool) -> Entry | None:
        """Take the call that may begin now, and count it as running; None when none may."""
        ready = [lane[0] for lane in self._lanes.values() if not lane[0].missing]
        if not concurrent and self.running:
            ready = [entry for entry in ready if not self.running.isdisjoint(entry.chain)]
        if not ready:
            return None
        entry = min(ready, key=lambda entry: entry.arrived)
        self._leave(entry)
        self.running.add(entry.id)
        return entry

    def end(self, id: int) -> None:
        """A running call has ended."""
        self.running.discard(id)

    def remove(self, id: int) -> bool:
        """Take out a call that has not begun; whether there was one."""
        for lane in self._lanes.values():
            for entry in lane:
                if entry.id == id:
                    self._leave(entry)
                    return True
        return False

    def _leave(self, entry: Entry) -> None:
        lane = self._lanes[entry.lane]
        lane.remove(entry)
        if not lane:
            del self._lanes[entry.lane]
