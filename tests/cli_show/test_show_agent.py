"""`agentsim show`: persona, prompts, raw replies and how each was read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made_runs import EVIL, TALKING, MadeRun, one_session, three_sessions, with_groups

from agentsim.errors import ResultsError, UserError
from agentsim.report.agent import Who, show_agent

HALVES = {"side": {"categories": {"left": 0.5, "right": 0.5}}}


def test_all_that_one_agent_said(tmp_path: Path) -> None:
    run = one_session(tmp_path / "run")
    assert show_agent(run, Who(agent=1)) == (
        """\
made: session 1, agent 1

no persona: the run has no population

round 1: ok, 20.00
  system
    the rules
  user
    round 1?
  reply 1, final
    I say 20.0 (1, 0)
  read as text: ok, 20.00
  10 tokens in, 5 out, 0.50 s, finish: stop, http://127.0.0.1:9/v1

round 2: out_of_range, no value, after 2 attempts
  system: as before
  user
    round 2?
  reply 1
    I say None (1, 0)
  read as text: out_of_range: the answer is outside the range
  10 tokens in, 5 out, 0.50 s, finish: stop, http://127.0.0.1:9/v1
  system: as before
  user: as before, and then
    That was outside.
  reply 2, final
    I say None (1, 1)
  read as text: out_of_range: the answer is outside the range
  10 tokens in, 5 out, 0.50 s, finish: stop, http://127.0.0.1:9/v1
"""
    )


def test_the_persona_comes_first(tmp_path: Path) -> None:
    shown = show_agent(one_session(tmp_path / "run", attributes=HALVES), Who(agent=2))
    before, _, after = shown.partition("round 1: ok, 30.00")
    assert "\npersona\n" in before
    assert "  side  left" in before or "  side  right" in before
    assert after


def test_scripted_players_have_values_alone(tmp_path: Path) -> None:
    shown = show_agent(three_sessions(tmp_path / "run"), Who(session=3, agent=0))
    assert "round 1: ok, 34.00; won 100" in shown
    assert "round 2: ok, 17.00; won 100" in shown
    assert shown.count("no prompt and no reply: a player of m computes its guess") == 2


def test_one_round_alone(tmp_path: Path) -> None:
    shown = show_agent(one_session(tmp_path / "run"), Who(agent=3, round=2))
    assert "round 2: ok, 15.00" in shown
    assert "round 1" not in shown


@pytest.mark.parametrize(
    ("who", "message"),
    [
        (Who(session=4), "there is no session 4: the run has sessions 1 to 3"),
        (Who(session=0), "there is no session 0: the run has sessions 1 to 3"),
        (Who(agent=4), "there is no agent 4: the run has agents 0 to 3"),
        (Who(agent=-1), "there is no agent -1: the run has agents 0 to 3"),
        (Who(round=3), "there is no round 3: the run has rounds 1 to 2"),
        (Who(round=0), "there is no round 0: the run has rounds 1 to 2"),
    ],
)
def test_whom_there_is_not(tmp_path: Path, who: Who, message: str) -> None:
    with pytest.raises(UserError) as error:
        show_agent(three_sessions(tmp_path / "run"), who)
    assert str(error.value) == message


def test_a_single_session_is_named_alone(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the run has session 1 alone"):
        show_agent(one_session(tmp_path / "run"), Who(session=2))


def test_rounds_that_are_not_settled(tmp_path: Path) -> None:
    values: Any = {(2, 1): [1.0, 2.0], (2, 2): [1.0, 2.0]}
    scenario = {"sessions": 3, "rounds": 5}
    run = MadeRun(tmp_path / "run", values, scenario=scenario, end=None).write()
    with pytest.raises(UserError) as error:
        show_agent(run, Who(session=2, round=4))
    assert str(error.value) == ("round 4 of session 2 is not settled; settled are rounds 1 to 2")
    with pytest.raises(UserError) as error:
        show_agent(run, Who(session=3))
    assert str(error.value) == (
        "no round of session 3 is settled; sessions with settled rounds are 2"
    )
    empty = MadeRun(tmp_path / "empty", {}, end=None).write()
    with pytest.raises(UserError, match="nor of any other session"):
        show_agent(empty, Who())


def test_replies_cannot_steer_the_terminal(tmp_path: Path) -> None:
    text = EVIL + "\r\x07\x9b2J\x1b]0;title\x07\n\tsecond line \u2028"
    evil = {"si\x1bde": {"categories": {"\x1b[2J": 0.5, "ok": 0.5}}}
    run = one_session(tmp_path / "run", texts={0: text}, attributes=evil)
    shown = "".join(show_agent(run, Who(agent=agent)) for agent in range(4))
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert r"\x1b[31m\u202ered\r\x07\x9b2J\x1b]0;title\x07" in shown.replace("\n    ", "")
    assert "\n        second line \\u2028\n" in shown


def test_long_lines_are_wrapped_and_nothing_is_lost(tmp_path: Path) -> None:
    words = " ".join(f"word{i}" for i in range(200)) + " " + "x" * 300
    run = one_session(tmp_path / "run", texts={0: words})
    shown = show_agent(run, Who(agent=0, round=1))
    assert max(map(len, shown.splitlines())) <= 80
    reply = shown.partition("reply 1, final\n")[2].partition("  read as")[0]
    assert "".join(reply.split()) == "".join(words.split())


def test_one_agent_of_many_is_found(tmp_path: Path) -> None:
    values = {(1, r): [float(i % 100) for i in range(70_000)] for r in (1, 2)}
    run = MadeRun(tmp_path / "run", values).write()
    shown = show_agent(run, Who(agent=69_999))
    assert shown.count("ok, 99.00") == 2


def test_there_must_be_a_run(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no run is here"):
        show_agent(tmp_path, Who())


def test_nobody_answered_is_no_scripted_player(tmp_path: Path) -> None:
    run = MadeRun(tmp_path / "run", {(1, 1): [None]}, model=dict(TALKING)).write()
    for part in (run / "requests").iterdir():
        part.unlink()
    assert "nothing came back" in show_agent(run, Who())


def test_the_group_is_named(tmp_path: Path) -> None:
    run = with_groups(one_session(tmp_path / "run"), ["red", "blue"])
    assert "round 1: ok, 20.00, group blue\n" in show_agent(run, Who(agent=1))
