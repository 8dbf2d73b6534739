"""Agents for the model of the runtime: they wait at gates that the test opens, and watch order.

All of them live in the test's own process, so what they see is kept in this module.
"""

import asyncio
import contextlib
from collections import defaultdict

from agentsim.actors import Agent, Environment
from agentsim.actors.host import current_chain

GATES: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)
BEGAN: defaultdict[str, list[int]] = defaultdict(list)
WRONG: list[str] = []
LARGE = 70_000


def forget() -> None:
    """Begin anew."""
    GATES.clear()
    BEGAN.clear()
    WRONG.clear()


class Watched(Agent):
    """Notes when its calls begin, and whether two run at once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.running: list[int] = []

    def begin(self, serial: int | None) -> None:
        chain = current_chain()
        if not set(self.running) <= set(chain):
            WRONG.append(f"{self.name}: {chain[-1]} began while {self.running} ran")
        if serial is not None:
            BEGAN[self.name].append(serial)
        self.running.append(chain[-1])

    def plain(self, serial, value):
        self.begin(serial)
        self.running.pop()
        return ["plain", value]

    def fail(self, serial, value):
        self.begin(serial)
        self.running.pop()
        raise ValueError(f"failed with {value!r:.40}")

    def large(self, serial, value):
        self.begin(serial)
        self.running.pop()
        return [bytes(LARGE), value]

    async def hold(self, serial, gate, value):
        self.begin(serial)
        me = current_chain()[-1]
        try:
            await GATES[gate].wait()
        finally:
            self.running.remove(me)
        return ["hold", value]

    async def stubborn(self, serial, gate, value):
        """Takes no notice of a cancel."""
        self.begin(serial)
        me = current_chain()[-1]
        while not GATES[gate].is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await GATES[gate].wait()
        self.running.remove(me)
        return ["stubborn", value]

    async def relay(self, serial, other, value):
        """Asks another and waits."""
        self.begin(serial)
        me = current_chain()[-1]
        try:
            return ["relay", await other.plain(None, value)]
        finally:
            self.running.remove(me)

    async def circle(self, serial, other, me, value):
        """Asks another, who asks back."""
        self.begin(serial)
        call = current_chain()[-1]
        try:
            return ["circle", await other.back(me, value)]
        finally:
            self.running.remove(call)

    async def back(self, me, value):
        self.begin(None)
        call = current_chain()[-1]
        try:
            return ["back", await me.plain(None, value)]
        finally:
            self.running.remove(call)

    async def pass_on(self, serial, one, other, gate, value):
        """Gives one's placeholder to another, and waits for the other."""
        self.begin(serial)
        call = current_chain()[-1]
        try:
            return ["pass", await other.plain(None, one.hold(None, gate, value))]
        finally:
            self.running.remove(call)

    async def regret(self, serial, one, gate, value):
        """Calls another and cancels at once, and drops a second call."""
        self.begin(serial)
        self.running.pop()
        one.hold(None, gate, value).cancel()
        one.large(None, value)
        return ["regret", value]

    async def tell_and_wait(self, serial, one, gate):
        """Tells another and does not care, then waits."""
        self.begin(serial)
        call = current_chain()[-1]
        one.plain(77, None)
        try:
            await GATES[gate].wait()
        finally:
            self.running.remove(call)

    def hand_over(self, serial, one, value):
        """Returns a placeholder: whoever called gets the result."""
        self.begin(serial)
        self.running.pop()
        return one.plain(None, value)

    def nested(self, serial, one, value):
        """Returns a placeholder inside a list, which is refused."""
        self.begin(serial)
        self.running.pop()
        return [one.plain(None, value)]


class Place(Environment):
    """Concurrent, and asks members back."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def gather(self, serial, members, value):
        return ["gather", [await p for p in [m.plain(None, value) for m in members]]]

    async def hold(self, serial, gate, value):
        await GATES[gate].wait()
        return ["hold", value]
