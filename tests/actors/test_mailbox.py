"""The mailbox's rules, one by one and for any order of events."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.actors.mailbox import Entry, Mailbox

CENTRE, OTHER = -1, 5


def entry(id: int, lane: int = CENTRE, chain: tuple[int, ...] = (), missing: int = 0) -> Entry:
    return Entry(id, lane, frozenset(chain), missing)


def begin(box: Mailbox, *, concurrent: bool = False) -> list[int]:
    began = []
    while (taken := box.next(concurrent=concurrent)) is not None:
        began.append(taken.id)
    return began


def test_one_call_at_a_time_in_order_of_arrival() -> None:
    box = Mailbox()
    for id, lane in ((1, CENTRE), (2, OTHER), (3, CENTRE)):
        box.add(entry(id, lane))
    order = []
    while not box.idle:
        (id,) = begin(box)
        order.append(id)
        box.end(id)
    assert order == [1, 2, 3]


def test_concurrent_calls_begin_side_by_side() -> None:
    box = Mailbox()
    for id in (1, 2, 3):
        box.add(entry(id))
    assert begin(box, concurrent=True) == [1, 2, 3]


def test_a_missing_argument_holds_up_its_own_caller_only() -> None:
    box = Mailbox()
    waits = entry(1, missing=1)
    box.add(waits)
    box.add(entry(2))
    box.add(entry(3, OTHER))
    assert begin(box) == [3]
    box.end(3)
    assert begin(box) == []
    box.resolve(waits)
    assert begin(box) == [1]
    box.end(1)
    assert begin(box) == [2]


def test_a_chain_may_come_back_to_the_agent_that_waits_for_it() -> None:
    box = Mailbox()
    box.add(entry(1))
    assert begin(box) == [1]
    box.add(entry(2, OTHER))
    box.add(entry(3, lane=77, chain=(1, 77)))
    assert begin(box) == [3]
    box.end(3)
    assert begin(box) == []
    box.end(1)
    assert begin(box) == [2]


def test_a_call_that_was_removed_does_not_begin() -> None:
    box = Mailbox()
    entries = [entry(id) for id in range(1, 6)]
    for each in entries:
        box.add(each)
    assert begin(box) == [1]
    box.remove(entries[2])
    box.remove(entries[1])
    box.end(1)
    assert begin(box) == [4]
    box.remove(entries[4])
    assert not box.idle
    box.end(4)
    assert begin(box) == []
    assert box.idle


def test_a_call_that_was_awaited_waits_its_turn_when_nobody_does_any_more() -> None:
    box = Mailbox()
    box.add(entry(1))
    assert begin(box) == [1]
    box.add(entry(2, OTHER))
    awaited = entry(3, lane=77, chain=(1, 77), missing=1)
    box.add(awaited)
    box.end(1)
    assert begin(box) == [2]
    box.resolve(awaited)
    assert begin(box) == []
    box.end(2)
    assert begin(box) == [3]


@pytest.mark.parametrize("lanes", [1, 50_000])
def test_many_calls_wait_at_one_agent_at_no_cost(lanes: int) -> None:
    box = Mailbox()
    entries = [entry(id, id % lanes) for id in range(50_000)]
    began = time.perf_counter()
    for each in entries:
        box.add(each)
        box.next(concurrent=False)
    for each in reversed(entries[1::2]):
        box.remove(each)
    box.end(0)
    order = []
    while (taken := box.next(concurrent=False)) is not None:
        order.append(taken.id)
        box.end(taken.id)
    assert order == list(range(2, 50_000, 2))
    assert box.idle
    assert time.perf_counter() - began < 2.0


@given(st.data())
def test_every_call_begins_once_and_callers_keep_their_order(data: st.DataObject) -> None:
    box = Mailbox()
    entries = [
        entry(id, data.draw(st.integers(0, 3)), missing=data.draw(st.integers(0, 1)))
        for id in range(1, data.draw(st.integers(1, 12)) + 1)
    ]
    waiting, began, running = list(entries), [], set()
    while len(began) < len(entries) or running:
        steps = []
        if waiting:
            steps.append("arrive")
        lacking = [e for e in entries if e.missing and e.arrived]
        if lacking:
            steps.append("resolve")
        if running:
            steps.append("end")
        match data.draw(st.sampled_from(steps)):
            case "arrive":
                box.add(waiting.pop(0))
            case "resolve":
                box.resolve(lacking.pop(data.draw(st.integers(0, len(lacking) - 1))))
            case "end":
                box.end(running.pop())
        for id in begin(box):
            assert not running
            running.add(id)
            began.append(id)
    assert sorted(began) == [e.id for e in entries]
    for lane in range(4):
        mine = [e.id for e in entries if e.lane == lane]
        assert [id for id in began if id in mine] == mine
    assert box.idle
