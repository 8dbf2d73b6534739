"""Agents for the tests of the actor runtime. Their module is sent to the workers."""

import asyncio
import os
import threading
import time
from dataclasses import dataclass

from agentsim.actors import Agent, Environment, on


@dataclass
class Plan:
    steps: list[str]


class Echo(Agent):
    """Says back what it is told."""

    def __init__(self, name: str = "", **more) -> None:
        self.name = name
        self.more = more
        self.calls: list[object] = []

    def act(self, value=None):
        self.calls.append(value)
        return value

    def history(self) -> list[object]:
        return self.calls

    def called(self) -> str:
        return self.name

    def pid(self) -> int:
        return os.getpid()

    def thread(self) -> str:
        return threading.current_thread().name

    def fail(self, text: str):
        raise ValueError(text)

    async def slow(self, seconds: float, value=None):
        self.calls.append(("begin", value))
        await asyncio.sleep(seconds)
        self.calls.append(("end", value))
        return value

    async def ask(self, other, value):
        """Ask another agent, and wait."""
        return await other(value)

    async def ask_me(self, other, value):
        """Have another agent ask this one back."""
        return await other.ask(self.me, value)

    def meet(self, me) -> None:
        self.me = me

    def read_inside(self, other):
        return other(1).result()

    async def big(self, size: int) -> bytes:
        return bytes(size)

    def _private(self) -> str:
        return "secret"


class Broken(Agent):
    def __init__(self) -> None:
        raise RuntimeError("cannot be made")

    def act(self):
        return 1


class Blocks(Agent):
    """Blocks a thread."""

    blocking = True

    def act(self, seconds: float) -> str:
        time.sleep(seconds)
        return threading.current_thread().name

    def read_inside(self, other):
        return other(1).result(timeout_s=10)


class Sleeper(Agent):
    async def act(self, seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds


class Square(Environment):
    """A place with members, who hear what is said and may answer."""

    def __init__(self) -> None:
        self.members = []
        self.said: list[str] = []
        self.inside = self.most = 0

    def join(self, member) -> int:
        self.members.append(member)
        return len(self.members)

    @on("say")
    async def hear(self, text: str) -> list[object]:
        self.said.append(text)
        return await self.emit("heard", text, to=self.members)

    async def visit(self, seconds: float) -> int:
        self.inside += 1
        self.most = max(self.most, self.inside)
        await asyncio.sleep(seconds)
        self.inside -= 1
        return self.most


class Member(Agent):
    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[str] = []

    @on("heard")
    def listen(self, text: str):
        self.heard.append(text)
        return f"{self.name}: {text}" if "?" in text else None

    async def speak(self, square, text: str):
        return await square.handle("say", text)

    def ears(self) -> list[str]:
        return self.heard


class Region(Environment):
    """Has places as children, on other workers."""

    def __init__(self, places, level: float = 0.0) -> None:
        self.places = places
        self.level = level

    def mean(self) -> float:
        return self.level

    async def total(self) -> float:
        """What the children add up to: their numbers come as one column."""
        return sum(await self.places.mean())

    async def tell(self, text: str) -> list[list[object]]:
        return await self.emit("heard", text, to=self.places)

    @on("heard")
    def listen(self, text: str) -> float:
        return self.level
