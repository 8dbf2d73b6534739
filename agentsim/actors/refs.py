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


class ResultRef(Struct, frozen=True, array_like=True):
    """The result of a call, kept by the worker that carried it out.

    Attributes:
        worker: index of that worker.
        call: number of the call, unique in a run.
    """

    worker: int
    call: int
