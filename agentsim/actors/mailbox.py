"""Which call an agent may begin. Pure: no loop, no agent, no clock.

The rules:

- One call at a time, for agents that are not concurrent.
- Calls of one caller begin in the order in which that caller made them. A call whose arguments are
  not here yet holds up the later calls of its caller, and nobody else's: what it waits for may
  need this agent.
- Among those that may begin, the one that arrived first does.
- A call whose chain leads through the call that runs now is let in at once: the agent waits for it.

The limit: two agents that ask *each other* at the same time, in chains that have nothing to do with
one another, wait for each other for ever, as two people do who both hold the line. Nobody is able
to tell it from two agents that think for long, so nothing is broken off by itself: give `result` a
`timeout_s`, or `await asyncio.wait_for(placeholder, …)` inside an agent, and `cancel` what came too
late; the agent is free again then. An `Environment` between the two never waits like that.

Every step costs the same however many calls wait, of however many callers.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush


@dataclass(slots=True, eq=False)
class Entry:
    """One call at an agent.

    Attributes:
        id: its number.
        lane: who made it, and on behalf of which call; order is kept within a lane.
        chain: the calls that led to it.
        missing: arguments that are not here yet.
        arrived: how many calls had arrived when it did, itself included.
        gone: whether it has begun or was taken out.
    """

    id: int
    lane: int
    chain: frozenset[int]
    missing: int = 0
    arrived: int = 0
    gone: bool = False


@dataclass(slots=True)
class Mailbox:
    """The calls of one agent.

    Attributes:
        running: numbers of the calls that have begun and not ended.
    """

    running: set[int] = field(default_factory=set)
    _lanes: dict[int, OrderedDict[int, Entry]] = field(default_factory=dict)
    # Entries that are first in their lane and have all arguments, by arrival; those that a running
    # call waits for are in the second. What has gone is left until it comes up.
    _ready: list[tuple[int, Entry]] = field(default_factory=list)
    _awaited: list[tuple[int, Entry]] = field(default_factory=list)
    _count: int = 0

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits."""
        return not self.running and not self._lanes

    def add(self, entry: Entry) -> None:
        """A call has arrived."""
        self._count += 1
        entry.arrived = self._count
        lane = self._lanes.get(entry.lane)
        if lane is None:
            self._lanes[entry.lane] = OrderedDict(((entry.id, entry),))
            self._consider(entry)
        else:
            lane[entry.id] = entry

    def resolve(self, entry: Entry) -> None:
        """An argument of a call has come."""
        entry.missing -= 1
        if self._first(entry.lane) is entry:
            self._consider(entry)

    def next(self, *, concurrent: bool) -> Entry | None:
        """Take the call that may begin now, and count it as running; None when none may."""
        anything = concurrent or not self.running
        while self._awaited and (anything or self._nobody_awaits(self._awaited[0][1])):
            heappush(self._ready, heappop(self._awaited))
        heap = self._ready if anything else self._awaited
        while heap:
            _, entry = heappop(heap)
            if not entry.gone:
                self.remove(entry)
                self.running.add(entry.id)
                return entry
        return None

    def end(self, id: int) -> None:
        """A running call has ended."""
        self.running.discard(id)

    def remove(self, entry: Entry) -> None:
        """Take out a call that has not begun."""
        entry.gone = True
        lane = self._lanes[entry.lane]
        was_first = self._first(entry.lane) is entry
        del lane[entry.id]
        if not lane:
            del self._lanes[entry.lane]
        elif was_first:
            self._consider(self._first(entry.lane))
        if len(self._ready) > 2 * len(self._lanes) + 64:
            self._ready = [item for item in self._ready if not item[1].gone]
            heapify(self._ready)

    def _first(self, lane: int) -> Entry:
        return next(iter(self._lanes[lane].values()))

    def _nobody_awaits(self, entry: Entry) -> bool:
        return entry.gone or self.running.isdisjoint(entry.chain)

    def _consider(self, entry: Entry) -> None:
        """The first of a lane may begin, if its arguments are here."""
        if not entry.missing:
            heap = self._ready if self._nobody_awaits(entry) else self._awaited
            heappush(heap, (entry.arrived, entry))
