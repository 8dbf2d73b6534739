"""Who an agent of a user's program is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Persona:
    """Who one agent is.

    Attributes:
        agent: number in its session, from 0.
        attributes: name → value; none without a population.
        background: the attributes as a text for a prompt; empty without a population.
    """

    agent: int
    attributes: dict[str, Any] = field(default_factory=dict)
    background: str = ""
