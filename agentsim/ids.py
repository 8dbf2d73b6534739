"""Names of agents and rounds. Agents count from 0, sessions and rounds from 1."""

from __future__ import annotations

from typing import NamedTuple


class AgentId(NamedTuple):
    """One agent of one session."""

    session: int
    agent: int

    def __str__(self) -> str:
        return f"s{self.session}/a{self.agent}"


class Round(NamedTuple):
    """One round of one session."""

    session: int
    round: int

    def __str__(self) -> str:
        return f"s{self.session}/r{self.round}"
