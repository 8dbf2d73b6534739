"""The rounds' state machine: each action counts once, sessions do not wait for each other."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agentsim.orchestrator.rounds import Ask, Enrol, Finish, Retire, Rounds, Settle
from agentsim.results import Grouping
from agentsim.rpc.codec import to_bytes
from agentsim.rpc.messages import Answers, Attempt


def answers(session: int, round: int, agents: list[int]) -> Answers:
    column = np.array(agents, dtype=np.uint32)
    return Answers(session, round, 0, to_bytes(column), to_bytes(column.astype(np.float64)))


def attempt(agent: int, number: int, *, final: bool, **fields: Any) -> Attempt:
    known = {
        "session": 1,
        "round": 1,
        "agent": agent,
        "step": 0,
        "attempt": number,
        "messages": [],
        "format": "text",
        "seed": 0,
        "text": "22",
        "finish_reason": "stop",
        "status": "ok",
        "value": 22.0,
        "reason": "",
        "final": final,
        "error": "",
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "latency_s": 0.1,
        "tries": 1,
        "endpoint": "",
        "request_id": "",
        "choice": 0,
        "worker": 0,
    }
    return Attempt(**(known | fields))


def begun(rounds: Rounds, agents: int) -> list[Any]:
    """Start, and enrol the agents of session 1 in one market; what is asked."""
    assert rounds.start()[0] == Enrol(1)
    return rounds.enrolled(1, Grouping(agents))


def test_a_run_of_one_session_is_asked_settled_and_asked_again() -> None:
    rounds = Rounds(sessions=1, rounds=2, at_once=1)
    (ask,) = begun(rounds, 3)
    assert (ask.observation.session, ask.observation.round, ask.observation.n) == (1, 1, 3)
    assert ask.observation.announced == {}
    assert rounds.answered(answers(1, 1, [2, 0])) == (2, [])
    new, (settle,) = rounds.answered(answers(1, 1, [1]))
    assert new == 1
    assert settle.board.gatherer.values.tolist() == [0, 1, 2]
    (ask,) = rounds.settled(settle.board, {0: {"mean": 1.0}})
    assert ask.observation.round == 2
    assert ask.observation.announced == {"mean": 1.0}
    _, (settle,) = rounds.answered(answers(1, 2, [0, 1, 2]))
    assert rounds.settled(settle.board, {}) == [Retire(1), Finish()]
    assert rounds.dropped == 0


def test_what_comes_twice_or_late_is_dropped_and_counted() -> None:
    rounds = Rounds(sessions=1, rounds=2, at_once=1)
    begun(rounds, 2)
    rounds.answered(answers(1, 1, [0]))
    assert rounds.answered(answers(1, 1, [0])) == (0, [])
    new, (settle,) = rounds.answered(answers(1, 1, [0, 1]))
    assert new == 1
    # The round is being settled: nothing can change it any more.
    assert rounds.answered(answers(1, 1, [1])) == (0, [])
    rounds.settled(settle.board, {})
    assert rounds.answered(answers(1, 1, [0])) == (0, [])
    assert rounds.answered(answers(7, 1, [0])) == (0, [])
    assert rounds.dropped == 5
    assert settle.board.gatherer.values.tolist() == [0, 1]


def test_only_final_attempts_are_actions() -> None:
    rounds = Rounds(sessions=1, rounds=1, at_once=1)
    begun(rounds, 1)
    first = attempt(0, 0, final=False, status="ambiguous", value=None)
    assert rounds.attempted([first]) == (0, [])
    new, (settle,) = rounds.attempted([attempt(0, 1, final=True)])
    assert new == 1
    assert settle.board.gatherer.statuses == {"ok": 1}


def test_an_agent_without_a_valid_action_has_acted() -> None:
    rounds = Rounds(sessions=1, rounds=1, at_once=1)
    begun(rounds, 2)
    rounds.attempted([attempt(1, 0, final=True)])
    bad = attempt(0, 2, final=True, status="truncated", value=None)
    _, (settle,) = rounds.attempted([bad])
    assert settle.board.gatherer.ok.tolist() == [False, True]
    assert settle.board.gatherer.statuses == {"ok": 1, "truncated": 1}


@given(st.integers(1, 5), st.integers(1, 4), st.integers(1, 3), st.integers(1, 6), st.data())
def test_any_order_of_answers_ends_the_run(sessions, agents, rounds, at_once, data) -> None:
    """Answers of all open rounds arrive in any order, some of them twice."""
    machine = Rounds(sessions=sessions, rounds=rounds, at_once=at_once)
    todo = machine.start()
    waiting: list[tuple[int, int, int]] = []
    settled: list[tuple[int, int]] = []
    active = peak = repeats = 0
    while True:
        for command in list(todo):
            todo.remove(command)
            match command:
                case Enrol(session):
                    active += 1
                    peak = max(peak, active)
                    todo += machine.enrolled(session, Grouping(agents))
                case Ask(observation):
                    key = (observation.session, observation.round)
                    waiting += [(*key, agent) for agent in range(agents)]
                case Settle(board):
                    settled.append((board.session, board.round))
                    todo += machine.settled(board, {})
                case Retire():
                    active -= 1
                case Finish():
                    assert not waiting
                    expected = {(s + 1, r + 1) for s in range(sessions) for r in range(rounds)}
                    assert set(settled) == expected
                    assert len(settled) == len(expected)
                    assert peak <= max(at_once, 1)
                    assert machine.dropped == repeats
                    return
        if todo:
            continue
        session, round, agent = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
        _, todo = machine.answered(answers(session, round, [agent]))
        if data.draw(st.booleans()):
            repeats += 1
            machine.answered(answers(session, round, [agent]))
