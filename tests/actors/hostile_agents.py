"""Agents that misuse the worker that they live in."""

import gc
import time

from agentsim.actors import Agent
from agentsim.actors.host import ActorHost
from agentsim.rpc.envelope import Envelope, Kind
from agentsim.worker.host import Host


class Intruder(Agent):
    """Sends what it likes over its worker's connection."""

    def kept(self) -> int:
        """Results that its worker keeps, this one not yet among them."""
        (host,) = [it for it in gc.get_objects() if isinstance(it, ActorHost)]
        return host.kept

    async def send(self, kind: int, to: int, sender: int, body: bytes) -> None:
        (host,) = [it for it in gc.get_objects() if isinstance(it, Host)]
        await host._put(Envelope(Kind(kind), to, sender, body))


class Rude(Agent):
    """Raises, returns and does what nobody should."""

    def __init__(self) -> None:
        self.items: list[int] = []

    def leave(self):
        raise SystemExit(3)

    def surrogate(self):
        raise ValueError("\ud800")

    def silent(self):
        raise Mute

    def verbose(self):
        raise ValueError("x" * 100_000_000)

    def needs(self, one):
        return one

    async def awaits(self, one):
        return one

    def generator(self):
        yield 1

    async def agenerator(self):
        yield 1

    def coroutine(self):
        return self.awaits(5)

    def stop(self):
        raise StopIteration(1)

    @staticmethod
    def static(value):
        return ["static", value]

    @classmethod
    def of_class(cls, value):
        return [cls.__name__, value]

    @staticmethod
    async def static_later(value):
        return ["later", value]

    def grow(self):
        self.items.append(1)
        return self.items

    def me(self, proxy):
        return [proxy]

    def large(self, size):
        return bytes(size)

    class Inner:
        pass


class RudeThread(Agent):
    """The same in a thread."""

    blocking = True
    running = 0

    def leave(self):
        raise SystemExit(3)

    def stop(self):
        raise StopIteration(1)

    async def awaits(self, one):
        return one

    def coroutine(self):
        return self.awaits(5)

    def alone(self, seconds):
        type(self).running += 1
        running = type(self).running
        time.sleep(seconds)
        type(self).running -= 1
        return running

    def ask(self, others, value):
        """Reads inside the thread what others say; the last one says the value."""
        return others[0].ask(others[1:], value).result() if others else value


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nothing to say")
