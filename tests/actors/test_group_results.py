"""Results of a group call, as they come: in rows, scattered, twice, with errors among them."""

import asyncio
import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.actors.caller import Caller
from agentsim.actors.codec import Codec
from agentsim.actors.messages import CENTRE, DoneMany, RemoteError
from agentsim.actors.parts import Part
from agentsim.actors.placeholder import GroupPlaceholder, RemoteFailure

AGENTS, FIRST, COUNT = 20, 5, 12
FAILURE = RemoteError("ValueError", "no", "", "worker 0")


@pytest.fixture(scope="module")
def caller() -> Iterable[Caller]:
    loop = asyncio.new_event_loop()
    yield Caller(CENTRE, loop, Codec(), lambda *_: None, proxy=lambda _: None)
    loop.close()


@st.composite
def messages(draw: st.DrawFn) -> list[list[int]]:
    """Offsets of a part's calls in the messages in which they come: many of them in rows."""
    offsets = list(range(COUNT))
    for _ in range(draw(st.integers(0, 3))):
        a, b = draw(st.integers(0, COUNT - 1)), draw(st.integers(0, COUNT - 1))
        offsets[a], offsets[b] = offsets[b], offsets[a]
    cuts = sorted(draw(st.sets(st.integers(1, COUNT - 1), max_size=4)))
    return [offsets[a:b] for a, b in zip([0, *cuts], [*cuts, COUNT], strict=True)]


@given(messages(), st.sets(st.integers(0, COUNT - 1), max_size=2))
def test_each_result_comes_to_its_agent(caller, messages, failed) -> None:
    placeholder = GroupPlaceholder(caller, [(1, FIRST, 0)], AGENTS)
    part = Part(placeholder, FIRST, COUNT, 0, (), 0)
    for offsets in messages:
        column = struct.pack(f"<{len(offsets)}I", *offsets)
        values = [None if offset in failed else float(offset) for offset in offsets]
        errors = {offset: FAILURE for offset in offsets if offset in failed}
        part.take(DoneMany(1, column, Codec().encode(values), None, errors), caller.decode)
    assert part.left == 0
    assert placeholder.done == COUNT
    # What failed comes with its message, before the others of it.
    order = [
        offset
        for offsets in messages
        for offset in [
            *(offset for offset in offsets if offset in failed),
            *(offset for offset in offsets if offset not in failed),
        ]
    ]
    assert list(placeholder._order) == [FIRST + offset for offset in order]
    for offset in range(COUNT):
        agent = FIRST + offset
        if offset in failed:
            assert isinstance(placeholder._errors[agent], RemoteFailure)
        else:
            assert placeholder._results[agent] == float(offset)


def test_a_row_that_comes_twice_changes_nothing(caller) -> None:
    placeholder = GroupPlaceholder(caller, [(1, 0, 0)], 8)
    part = Part(placeholder, 0, 8, 0, (), 0)
    for value, offsets in ((1.0, (0, 1, 2)), (2.0, (2, 3, 4)), (3.0, (0, 1))):
        column = struct.pack(f"<{len(offsets)}I", *offsets)
        part.take(DoneMany(1, column, Codec().encode([value] * len(offsets))), caller.decode)
    assert placeholder._results[:5] == [1.0, 1.0, 1.0, 2.0, 2.0]
    assert placeholder.done == 5
