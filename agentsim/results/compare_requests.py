"""The requests of two runs: which belong together, and what their prompts differ in."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from agentsim.results.aligned import Pairs, align
from agentsim.results.difference import Difference, of_values
from agentsim.results.directory import RunDirectory
from agentsim.results.parts import parts
from agentsim.results.pieces import Pieces

_KEY = ("session", "round", "agent", "step", "attempt")


def aligned_requests(stack: ExitStack, *directories: RunDirectory) -> tuple[Pieces, Pieces, Pairs]:
    """The requests of two runs' players, and which belong together.

    Args:
        stack: closes the files.

    Raises:
        ResultsError: they cannot be read.
    """
    left, right = (
        stack.enter_context(Pieces(parts(directory, "requests"))) for directory in directories
    )
    keys = [[table.numbers(name) for name in _KEY] for table in (left, right)]
    # Round 0 is when personas were written: they are a layer of their own.
    rows = [np.flatnonzero(key[1] > 0) for key in keys]
    pairs = align(*([part[row] for part in key] for key, row in zip(keys, rows, strict=True)))
    return (
        left,
        right,
        Pairs(
            rows[0][pairs.left],
            rows[1][pairs.right],
            rows[0][pairs.only_left],
            rows[1][pairs.only_right],
        ),
    )


def place_of_request(table: Pieces, row: int) -> tuple[str, dict[str, int]]:
    """The words and the key of a row of requests."""
    where = {name: table.value(row, name) for name in _KEY}
    step = f", step {where['step']}" if where["step"] else ""
    words = f"session {where['session']}, round {where['round']}, agent {where['agent']}"
    return f"{words}{step}, attempt {where['attempt'] + 1}", where


def difference_of_messages(left: Any, right: Any, place: str, **where: Any) -> Difference:
    """The first message that differs, of two prompts."""
    for number, pair in enumerate(zip(left, right, strict=False), 1):
        a, b = pair
        if a["role"] != b["role"]:
            return of_values(f"role of message {number}", a["role"], b["role"], place, **where)
        if a["content"] != b["content"]:
            what = f"message {number} ({a['role']})"
            return of_values(what, a["content"], b["content"], place, **where)
    mine, its = (f"{len(part)} messages" for part in (left, right))
    return Difference("messages", mine, its, place, where or None)
