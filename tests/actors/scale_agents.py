"""Agents for the tests of size."""

import asyncio
import os
import threading

from agentsim.actors import Agent, Environment


class Gate(Environment):
    """Many wait here, until it opens."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.waiting = 0

    async def wait(self, value):
        self.waiting += 1
        await self.event.wait()
        self.waiting -= 1
        return value

    def count(self) -> int:
        return self.waiting

    def threads(self) -> int:
        return threading.active_count()

    def open(self) -> None:
        self.event.set()


class Still(Agent):
    """Keeps nothing of what it is told."""

    def __init__(self, name: str) -> None:
        self.name = name

    def act(self, value):
        return value

    def called(self) -> str:
        return self.name

    def pid(self) -> int:
        return os.getpid()

    def fail(self, text: str):
        raise ValueError(text)

    async def slow(self, seconds: float):
        await asyncio.sleep(seconds)


class Walker(Agent):
    async def tell(self, other) -> None:
        """Tells another agent, and waits."""
        await other(None)

    async def through(self, gate, value):
        return await gate.wait(value)

    async def all_through(self, gate, count):
        placeholders = [gate.wait(i) for i in range(count)]
        return sum([await placeholder for placeholder in placeholders])

    def threads(self) -> int:
        return threading.active_count()
