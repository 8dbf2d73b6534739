"""Agents that keep everybody else of their process from running."""

import ctypes

from agentsim.actors import Agent


class Holder(Agent):
    """Holds the interpreter's lock, as code in C may."""

    def hold(self, s: float) -> str:
        ctypes.PyDLL(None).usleep(int(s * 1_000_000))
        return "done"

    def greet(self) -> str:
        return "hello"
