"""Agents as users write them."""

from __future__ import annotations

import asyncio
import random

from agentsim.actors import Agent


class Sleeper(Agent):
    """Thinks, and then says for how long."""

    async def act(self, think_s: float, jitter_s: float) -> float:
        """Think for `think_s` seconds, give or take `jitter_s`."""
        if jitter_s:
            think_s += jitter_s * random.uniform(-1.0, 1.0)
        await asyncio.sleep(think_s)
        return think_s

    def here(self) -> bool:
        """Say that one is there."""
        return True


class Echo(Agent):
    """Says what it is told."""

    def act(self, value: float) -> float:
        """Say it."""
        return value
