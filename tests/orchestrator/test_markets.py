"""Markets in the rounds' state machine: those that are apart wait for nobody, the others do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsim.config.scenario import Limits
from agentsim.errors import LimitReached
from agentsim.orchestrator.limits import Missing
from agentsim.orchestrator.rounds import Ask, Board, Command, Enrol, Finish, Retire, Rounds, Settle
from agentsim.results import Grouping
from agentsim.rpc.codec import to_bytes
from agentsim.rpc.messages import Answers, Observation
from agentsim.rpc.messages import Settle as Settled


def two_groups(*, separate: bool) -> Grouping:
    """Agents 0, 2 and 4 are in the first group, 1 and 3 in the second."""
    return Grouping(5, ("fast", "slow"), np.array([0, 1, 0, 1, 0], np.uint32), separate)


def answers(session: int, round: int, agents: list[int]) -> Answers:
    column = np.array(agents, dtype=np.uint32)
    return Answers(session, round, 0, to_bytes(column), to_bytes(column.astype(np.float64)))


def begun(*, separate: bool, rounds: int = 3) -> tuple[Rounds, list[Command]]:
    machine = Rounds(sessions=1, rounds=rounds, at_once=1)
    assert machine.start() == [Enrol(1)]
    return machine, machine.enrolled(1, two_groups(separate=separate))


def board_of(commands: list[Command]) -> Board:
    (settle,) = commands
    assert isinstance(settle, Settle)
    return settle.board


def test_a_slow_group_does_not_hold_up_a_fast_one_in_separate_markets() -> None:
    machine, asked = begun(separate=True)
    assert asked == [Ask(Observation(1, 1, 3, {}, 1)), Ask(Observation(1, 1, 2, {}, 2))]
    for round in (1, 2, 3):
        _, commands = machine.answered(answers(1, round, [0, 2, 4]))
        board = board_of(commands)
        assert (board.market, board.n, board.gatherer.agents.tolist()) == (0, 3, [0, 2, 4])
        commands = machine.settled(board, {0: {"mean": float(round)}})
        if round < 3:
            assert commands == [Ask(Observation(1, round + 1, 3, {"mean": float(round)}, 1))]
    # The fast group has played all of its rounds, and the slow one its first not yet.
    assert commands == []
    for round in (1, 2, 3):
        _, commands = machine.answered(answers(1, round, [1, 3]))
        board = board_of(commands)
        assert (board.market, board.gatherer.values.tolist()) == (1, [1, 3])
        commands = machine.settled(board, {0: {}})
    assert commands == [Retire(1), Finish()]
    assert machine.dropped == 0


def test_a_slow_group_holds_up_the_others_in_one_market() -> None:
    machine, asked = begun(separate=False)
    assert asked == [Ask(Observation(1, 1, 5, {}, 0))]
    assert machine.answered(answers(1, 1, [0, 2, 4])) == (3, [])
    assert machine.answered(answers(1, 1, [1])) == (1, [])
    _, commands = machine.answered(answers(1, 1, [3]))
    board = board_of(commands)
    assert board.gatherer.agents.tolist() == [0, 1, 2, 3, 4]
    assert machine.settled(board, {0: {"mean": 2.0}}) == [
        Ask(Observation(1, 2, 5, {"mean": 2.0}, 0))
    ]


def test_groups_that_are_told_their_own_numbers_are_asked_apart() -> None:
    machine, _ = begun(separate=False)
    _, commands = machine.answered(answers(1, 1, [0, 1, 2, 3, 4]))
    told = {1: {"mean": 2.0}, 2: {"mean": 4.0}}
    assert machine.settled(board_of(commands), told) == [
        Ask(Observation(1, 2, 5, {"mean": 2.0}, 1)),
        Ask(Observation(1, 2, 5, {"mean": 4.0}, 2)),
    ]


def test_a_message_about_two_markets_is_divided() -> None:
    machine, _ = begun(separate=True)
    counted, commands = machine.answered(answers(1, 1, [4, 3, 2, 1, 0]))
    assert counted == 5
    boards = [command.board for command in commands if isinstance(command, Settle)]
    assert [board.gatherer.values.tolist() for board in boards] == [[0, 2, 4], [1, 3]]


def test_what_is_late_for_one_market_is_in_time_for_the_other() -> None:
    machine, _ = begun(separate=True)
    _, commands = machine.answered(answers(1, 1, [0, 2, 4]))
    machine.settled(board_of(commands), {0: {}})
    counted, commands = machine.answered(answers(1, 1, [0, 1, 3]))
    assert (counted, machine.dropped) == (2, 1)
    assert board_of(commands).market == 1


@given(
    st.integers(1, 12),
    st.integers(1, 3),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 99),
    st.data(),
)
def test_every_market_plays_all_of_its_rounds_in_any_order(
    n: int, sessions: int, rounds: int, separate: bool, seed: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, n))
    codes = np.random.default_rng(seed).permutation(np.arange(n, dtype=np.uint32) % count)
    grouping = Grouping(n, tuple(map(str, range(count))), codes, separate)
    machine = Rounds(sessions=sessions, rounds=rounds, at_once=2)
    todo = list(machine.start())
    waiting: list[tuple[int, int, list[int]]] = []
    acted: Counter[tuple[int, int, int]] = Counter()
    settled: Counter[tuple[int, int, int]] = Counter()
    finished = False
    while todo or waiting:
        while todo:
            match todo.pop():
                case Enrol(session):
                    todo += machine.enrolled(session, grouping)
                case Ask(observation):
                    group = observation.group
                    agents = grouping.members(group - 1) if group else np.arange(n)
                    cut = data.draw(st.integers(0, len(agents)))
                    key = (observation.session, observation.round)
                    waiting += [(*key, part.tolist()) for part in (agents[:cut], agents[cut:])]
                case Settle(board):
                    settled[board.session, board.market, board.round] += 1
                    todo += machine.settled(board, {0: {}})
                case Retire():
                    pass
                case Finish():
                    finished = True
        if waiting:
            place = data.draw(st.integers(0, len(waiting) - 1))
            session, round, agents = waiting.pop(place)
            acted.update((session, round, agent) for agent in agents)
            if agents:
                todo = machine.answered(answers(session, round, agents))[1]
    assert finished
    assert machine.dropped == 0
    markets = count if separate else 1
    assert len(settled) == sessions * rounds * markets
    assert len(acted) == sessions * rounds * n
    assert set(settled.values()) | set(acted.values()) == {1}


def a_market(market: int, ok: int, empty: int) -> Settled:
    n = ok + empty
    statuses = {"ok": ok, "empty": empty}
    return Settled(
        1, 1, n, statuses, None, None, None, None, [], [], {}, 1.0, market=market, markets=3
    )


def test_missing_actions_are_counted_over_all_markets_of_a_round() -> None:
    missing = Missing(12, Limits(missing_share=0.25))
    missing.check(a_market(1, 1, 3))  # most of a small market, and a quarter of the round
    missing.check(a_market(0, 4, 0))
    with pytest.raises(LimitReached, match=r"4 of 12 agents have no valid action \(4 empty\)"):
        missing.check(a_market(2, 3, 1))
