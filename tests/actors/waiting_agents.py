"""Agents that wait for each other."""

import asyncio

from agentsim.actors import Agent, Environment, on


class Asker(Agent):
    def __init__(self, name: str) -> None:
        self.name = name
        self.other = None

    def called(self) -> str:
        return self.name

    def know(self, other) -> None:
        self.other = other

    async def enter(self, room, me):
        """Awaits a room that asks for the name meanwhile."""
        return await room.ask_back(me)

    async def ask_for_all(self, room):
        return await room.names()

    async def ask_later(self, seconds: float):
        await asyncio.sleep(seconds)
        return await self.other.called()

    async def ask_for(self, seconds: float, patience_s: float):
        await asyncio.sleep(seconds)
        try:
            return await asyncio.wait_for(self.other.called(), patience_s)
        except TimeoutError:
            return "gave up"

    async def pass_to(self, other, value):
        return await other(value)


class Room(Environment):
    def __init__(self) -> None:
        self.members = []
        self.inner = None

    def join(self, member) -> None:
        self.members.append(member)

    def contain(self, inner) -> None:
        self.inner = inner

    async def ask_back(self, member):
        if self.inner is not None:
            return await self.inner.ask_back(member)
        return await member.called()

    async def names(self):
        return [await member.called() for member in self.members]


class ThreadRoom(Environment):
    """The same, in threads."""

    blocking = True

    def __init__(self) -> None:
        self.members = []
        self.inner = None

    def join(self, member) -> None:
        self.members.append(member)

    def contain(self, inner) -> None:
        self.inner = inner

    def ask_back(self, member):
        if self.inner is not None:
            return self.inner.ask_back(member).result()
        return member.called().result()

    @on("who")
    def who(self, member):
        return member.called().result()
