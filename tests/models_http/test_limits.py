"""Limits, pauses and leaves of one endpoint, without waiting."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from agentsim.models.limits import (
    EndpointHealth,
    RetryPolicy,
    TokenRate,
    Verdict,
    jitter_of,
    mix,
    retry_after_s,
)

POLICY = RetryPolicy(
    first_pause_s=1.0, longest_pause_s=30.0, leave_after=3, leave_after_overloads=4, leave_s=2.0
)


def health(ceiling=64):
    return EndpointHealth(ceiling, POLICY)


def end(state, ticket, verdict, now=0.0, pause_s=None):
    state.end(ticket, verdict, now, pause_s=pause_s, jitter=1.0)


def test_limit_starts_at_the_ceiling_and_bounds_what_is_in_flight():
    state = health(2)
    assert state.capacity(0.0) == 2
    state.send()
    state.send()
    assert state.capacity(0.0) == 0


def test_overloads_of_one_volley_halve_the_limit_once():
    state = health()
    tickets = [state.send() for _ in range(64)]
    for ticket in tickets:
        end(state, ticket, Verdict.OVERLOADED)
    assert state.limit == 32
    end(state, state.send(), Verdict.OVERLOADED)
    assert state.limit == 16


def test_limit_never_falls_below_one():
    state = health(3)
    for _ in range(10):
        end(state, state.send(), Verdict.OVERLOADED)
    assert state.limit == 1.0


def test_limit_creeps_back_to_the_ceiling_and_not_past_it():
    state = health(8)
    for _ in range(3):
        end(state, state.send(), Verdict.OVERLOADED)
    assert state.limit == 1.0
    end(state, state.send(), Verdict.OK)
    assert state.limit == 2.0
    for _ in range(60):
        end(state, state.send(), Verdict.OK)
    assert state.limit == 8.0


def test_overload_pauses_the_endpoint_longer_each_time_until_it_answers():
    state = health()
    end(state, state.send(), Verdict.OVERLOADED, now=10.0)
    assert state.paused_until == 11.0
    assert state.capacity(10.9) == 0
    assert state.capacity(11.0) == 32
    end(state, state.send(), Verdict.OVERLOADED, now=20.0)
    assert state.paused_until == 22.0
    end(state, state.send(), Verdict.OK, now=23.0)
    end(state, state.send(), Verdict.OVERLOADED, now=30.0)
    assert state.paused_until == 31.0


def test_the_server_decides_the_pause_within_bounds():
    state = health()
    end(state, state.send(), Verdict.OVERLOADED, now=0.0, pause_s=7.0)
    assert state.paused_until == 7.0
    end(state, state.send(), Verdict.OVERLOADED, now=0.0, pause_s=86_400.0)
    assert state.paused_until == 30.0


def test_success_of_an_older_request_does_not_forgive_an_overload():
    state = health()
    older, newer = state.send(), state.send()
    end(state, newer, Verdict.OVERLOADED)
    end(state, older, Verdict.OK)
    end(state, state.send(), Verdict.OVERLOADED, now=5.0)
    assert state.paused_until == 7.0


def test_endpoint_is_left_after_failures_in_a_row():
    state = health()
    for verdict in (Verdict.FAILED, Verdict.FAILED, Verdict.OK, Verdict.FAILED, Verdict.FAILED):
        end(state, state.send(), verdict)
    assert state.trusted
    end(state, state.send(), Verdict.FAILED, now=10.0)
    assert not state.trusted
    assert not state.usable(11.9)
    assert state.usable(12.0)


def left_at(now=0.0):
    state = health()
    state.leave(now)
    return state


def test_one_request_at_a_time_tries_an_endpoint_that_was_left():
    state = left_at()
    assert state.capacity(1.9) == 0
    assert state.capacity(2.0) == 1
    state.send()
    assert state.capacity(2.0) == 0


def test_success_brings_an_endpoint_back():
    state = left_at()
    end(state, state.send(), Verdict.OK, now=2.0)
    assert state.trusted
    assert state.capacity(2.0) == 64


def test_failed_trials_double_the_leave_up_to_a_bound():
    state = left_at()
    leaves = []
    now = 2.0
    for _ in range(6):
        end(state, state.send(), Verdict.FAILED, now=now)
        leaves.append(state.left_until - now)
        now = state.left_until
    assert leaves == [4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_late_failures_do_not_prolong_a_leave():
    state = health()
    tickets = [state.send() for _ in range(20)]
    for ticket in tickets:
        end(state, ticket, Verdict.FAILED, now=1.0)
    assert state.left_until == 3.0


def test_endless_overload_counts_as_failure():
    state = health()
    for now in range(3):
        end(state, state.send(), Verdict.OVERLOADED, now=float(now))
        assert state.trusted
    end(state, state.send(), Verdict.OVERLOADED, now=4.0)
    assert not state.trusted


def test_cancelled_request_frees_its_place():
    state = health(1)
    state.send()
    state.forget()
    assert state.capacity(0.0) == 1


def test_pauses_grow_and_are_bounded():
    assert [POLICY.pause_s(n, 1.0) for n in (1, 2, 3, 6, 10_000)] == [1, 2, 4, 30, 30]
    assert POLICY.pause_s(2, 0.5) == 1.0


WALL = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("-3", 0.0),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        (format_datetime(WALL.replace(second=9), usegmt=True), 9.0),
        ("Sun, 01 Mar 2026 11:59:00 GMT", 0.0),
        ("Sun, 01 Mar 2026 12:00:05", 5.0),
        ("Sun, 99 Mar 2026 12:00:05 GMT", None),
    ],
)
def test_retry_after_is_read_in_both_forms(header, seconds):
    assert retry_after_s(header, WALL.timestamp()) == seconds


def test_token_rate_forgets_what_is_old():
    rate = TokenRate(window_s=10)
    rate.add(30, 0.0)
    rate.add(20, 0.9)
    rate.add(50, 5.0)
    assert rate.per_s(5.0) == 10.0
    assert rate.per_s(10.0) == 5.0
    assert rate.per_s(60.0) == 0.0


def test_mix_spreads_and_jitter_stays_in_bounds():
    homes = [mix(1, agent) % 4 for agent in range(4000)]
    counts = [homes.count(n) for n in range(4)]
    assert min(counts) > 900
    assert mix(1, 2) != mix(2, 1)
    jitters = [jitter_of(n) for n in range(1000)]
    assert min(jitters) >= 0.5
    assert max(jitters) < 1.0
    assert math.isclose(sum(jitters) / 1000, 0.75, abs_tol=0.02)
