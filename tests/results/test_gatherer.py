from __future__ import annotations

import numpy as np
import pytest
from recorded_runs import attempt

from agentsim.replies import STATUSES
from agentsim.results import RoundGatherer
from agentsim.rpc import codec
from agentsim.rpc.messages import Answers, Settle

SETTLE = Settle(1, 1, 4, {}, 1.0, 1.0, 1.0, 1.0, [1, 3], [60.0, 40.0], {}, 1.0)


def answers(agents: list[int], values: list[float]) -> Answers:
    columns = np.array(agents, np.uint32), np.array(values, np.float64)
    return Answers(1, 1, 0, codec.to_bytes(columns[0]), codec.to_bytes(columns[1]))


def test_answers_in_any_order_end_in_order_of_agents() -> None:
    gatherer = RoundGatherer(4)
    gatherer.add_answers(answers([3, 1], [30.0, 10.0]))
    assert gatherer.final == 2
    assert gatherer.statuses == {"ok": 2}
    gatherer.add_answers(answers([0, 2], [0.0, 20.0]))
    columns = gatherer.columns(SETTLE, model="m")
    assert len(columns) == 4
    assert columns.agents.tolist() == [0, 1, 2, 3]
    assert columns.values.tolist() == [0.0, 10.0, 20.0, 30.0]
    assert columns.won.tolist() == [False, True, False, True]
    assert columns.payoffs.tolist() == [0.0, 60.0, 0.0, 40.0]
    assert columns.attempts.tolist() == [1, 1, 1, 1]
    assert columns.text is None
    assert columns.model == "m"


def test_the_first_final_action_counts() -> None:
    gatherer = RoundGatherer(4)
    gatherer.add_answers(answers([0, 1], [1.0, 2.0]))
    gatherer.add_answers(answers([1, 2], [9.0, 3.0]))
    assert gatherer.values[:3].tolist() == [1.0, 2.0, 3.0]
    assert gatherer.final == 3
    gatherer.add_attempts([attempt(3, 0, "ok", 4.0), attempt(3, 1, "ok", 5.0)])
    assert gatherer.values.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_an_attempt_that_comes_twice_is_paid_once() -> None:
    gatherer = RoundGatherer(4)
    first, second = attempt(2, 0, "no_answer"), attempt(2, 1, "ok", 50.0)
    for batch in ([first], [first, second], [second]):
        gatherer.add_attempts(batch)
    columns = gatherer.columns(SETTLE, model="m")
    assert columns.attempts.tolist() == [0, 0, 2, 0]
    assert columns.prompt_tokens is not None
    assert columns.completion_tokens is not None
    assert columns.latency_s is not None
    assert columns.prompt_tokens.tolist() == [0, 0, 200, 0]
    assert columns.completion_tokens.tolist() == [0, 0, 24, 0]
    assert columns.latency_s.tolist() == [0.0, 0.0, 1.5, 0.0]
    assert columns.text == [None, None, "I guess 50.0", None]


def test_who_has_no_final_action_has_failed() -> None:
    gatherer = RoundGatherer(2)
    gatherer.add_attempts([attempt(0, 0, "no_answer"), attempt(1, 0, "empty", final=True)])
    assert gatherer.statuses == {"empty": 1}
    assert not gatherer.ok.any()
    columns = gatherer.columns(Settle(1, 1, 2, {}, *[None] * 4, [], [], {}, 1.0), model="m")
    assert [STATUSES[index] for index in columns.statuses] == ["failed", "empty"]
    assert np.isnan(columns.values).all()


def test_an_agent_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(IndexError):
        RoundGatherer(2).add_answers(answers([2], [1.0]))
    with pytest.raises(IndexError):
        RoundGatherer(2).add_attempts([attempt(2, 0, "ok", 1.0)])


def test_what_scripted_players_say_stands_in_their_rows_once() -> None:
    gatherer = RoundGatherer(4)
    agents, values = np.array([2, 0], np.uint32), np.array([20.0, 0.0])
    gatherer.add_values(agents, values, ["two", "none"])
    gatherer.add_values(np.array([0, 1], np.uint32), np.array([9.0, 1.0]), ["again", "one"])
    assert gatherer.columns(SETTLE, model="dummy").text == ["none", "one", "two", None]
