"""Names of things that live elsewhere: agents, and results of calls."""

from __future__ import annotations

from msgspec import Struct


class AgentRef(Struct, frozen=True, array_like=True):
    """An agent on a worker.

    Attributes:
        worker: index of the worker over all hosts.
        group: number of the group that it was made in, unique in a run.
        index: its place in the group, from 0.
        type: class path, e.g. `my_agents:Bob`.
    """

    worker: int
    group: int
    index: int
    type: str


class GroupRef(Struct, frozen=True, array_like=True):
    """All agents of a group.

    Attributes:
        group: its number, unique in a run.
        type: class path of its agents.
        parts: (worker, first agent, count) of each part, in order of agents.
    """

    group: int
    type: str
    parts: tuple[tuple[int, int, int], ...]


class ResultRef(Struct, frozen=True, array_like=True):
    """The result of a call, kept by the worker that carried it out.

    Attributes:
        worker: index of that worker.
        call: number of the call, unique in a run.
    """

    worker: int
    call: int


Ref = AgentRef | GroupRef | ResultRef
"""What may stand in a value for something that lives elsewhere."""
