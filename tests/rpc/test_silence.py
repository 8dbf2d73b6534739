"""Silence and leases: what is told, and when somebody is given up."""

from __future__ import annotations

import asyncio

import pytest

from agentsim.rpc.awake import AwakeClock
from agentsim.rpc.lifeline import Lease
from agentsim.rpc.silence import News, Silence, State, Watched

ALLOWED = Silence(notice_s=5, grace_s=30)


class Time:
    """Monotonic time that a test moves."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


def test_silence_is_told_once_and_so_is_its_end() -> None:
    peer = Watched()
    seen = [(s, peer.judge(s, ALLOWED), peer.state) for s in (0.5, 3, 5, 20, 34, 0.5, 0.6)]
    assert seen == [
        (0.5, None, State.HEALTHY),
        (3, None, State.BUSY),
        (5, News.SILENT, State.FROZEN),
        (20, None, State.FROZEN),
        (34, None, State.FROZEN),
        (0.5, News.BACK, State.HEALTHY),
        (0.6, None, State.HEALTHY),
    ]
    assert peer.longest_s == 34


def test_a_peer_is_lost_once_and_for_good() -> None:
    peer = Watched()
    assert peer.judge(6, ALLOWED) is News.SILENT
    assert peer.judge(35.5, ALLOWED) is News.LOST
    assert [peer.judge(s, ALLOWED) for s in (36, 0.5)] == [None, None]
    assert peer.state is State.LOST


def test_without_grace_a_peer_is_lost_at_the_notice() -> None:
    assert Watched().judge(5.1, Silence(5, 0)) is News.LOST


def test_a_clock_stands_still_while_its_program_does() -> None:
    time = Time()
    clock = AwakeClock(time)
    before = clock.now()
    for _ in range(10):
        time.s += 1
        clock.now()
    assert clock.now() == before + 10
    time.s += 3600
    assert clock.now() == before + 12


async def test_a_lease_runs_out_when_nobody_has_held_it_for_its_length() -> None:
    lease = Lease(0.3)
    with lease.held():
        running_out = asyncio.ensure_future(lease.run_out())
        await asyncio.sleep(0.6)
        assert not running_out.done()
    await asyncio.sleep(0.1)
    assert not running_out.done()
    await asyncio.wait_for(running_out, 10)


async def test_a_machine_that_slept_does_not_find_its_lease_run_out() -> None:
    time = Time()
    lease = Lease(60, AwakeClock(time))
    running_out = asyncio.ensure_future(lease.run_out())
    await asyncio.sleep(0)
    time.s += 3600  # it slept, and wakes
    await asyncio.sleep(0.7)
    assert not running_out.done()
    running_out.cancel()


async def test_a_node_without_a_lease_lives_on() -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(Lease(None).run_out(), 0.1)
