"""The player: what it asks, what it keeps, how it asks again. No model is needed."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from agentsim.config.scenario import Last, Memory
from agentsim.games.guess_average import GuessAverageSpec, MarketContext, Player, prompts
from agentsim.replies import Status
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.messages import Attempt, Completion, Observation, Request

SPEC = GuessAverageSpec(type="guess_average")
TOLD = {2: {"mean": 33.498, "target": 22.332}, 3: {"mean": 20.0, "target": 13.333333}}
# A reply for each status, as text that rules read.
BAD: dict[Status, dict[str, str]] = {
    Status.TRUNCATED: {"text": "Let me think about what the", "finish_reason": "length"},
    Status.EMPTY: {"text": "", "finish_reason": "stop"},
    Status.NO_ANSWER: {"text": "I would rather not say.", "finish_reason": "stop"},
    Status.AMBIGUOUS: {"text": "Either 20 or 30.", "finish_reason": "stop"},
    Status.OUT_OF_RANGE: {"text": "Answer: 130", "finish_reason": "stop"},
    Status.FAILED: {"text": "", "finish_reason": "error", "error": "503 from the server"},
}


def context(**parts: Any) -> MarketContext:
    base: dict[str, Any] = {
        "spec": SPEC,
        "prompt": "step_by_step",
        "memory": "numbers",
        "format": "text",
        "attempts": 3,
        "seed": 7,
        "worker": 2,
    }
    return MarketContext(**{**base, **parts})


def observe(round: int, session: int = 1) -> Observation:
    return Observation(session, round, 40, TOLD.get(round, {}))


def reply(request: Request, text: str = "", **parts: Any) -> Completion:
    return Completion(
        session=request.session,
        round=request.round,
        agent=request.agent,
        step=request.step,
        attempt=request.attempt,
        text=text,
        finish_reason=parts.pop("finish_reason", "stop"),
        **parts,
    )


def play(player: Player, *texts: str) -> Request:
    """Play rounds with these replies, and ask the next one."""
    for round, text in enumerate(texts, 1):
        _, request = player.digest(reply(player.prepare(observe(round)), text))
        while request is not None:
            _, request = player.digest(reply(request, text))
    return player.prepare(observe(len(texts) + 1))


def roles(request: Request) -> list[str]:
    return [message.role for message in request.messages]


def test_the_first_question() -> None:
    request = Player(context(), 1, 5).prepare(observe(1))
    assert roles(request) == ["system", "user"]
    assert request.messages[0].content == prompts.system(SPEC, 40, "step_by_step", None)
    assert request.messages[1].content == (
        "This is round 1. Which number from 0 to 100 do you pick?\n\n"
        + prompts.reply_format("step_by_step", "text")
    )
    assert (request.session, request.round, request.agent) == (1, 1, 5)
    assert (request.step, request.attempt) == (0, 0)
    assert request.schema is None


def test_a_schema_is_sent_where_the_server_enforces_one() -> None:
    request = Player(context(format="json", prompt="direct"), 1, 0).prepare(observe(1))
    assert request.schema == prompts.schema("direct")
    assert "JSON" in request.messages[1].content


def test_a_valid_reply_is_final_and_recorded_whole() -> None:
    player = Player(context(), 1, 5)
    request = player.prepare(observe(1))
    usage = {"prompt_tokens": 90, "completion_tokens": 12, "latency_s": 0.5, "tries": 2}
    origin = {"endpoint": "http://127.0.0.1:1/v1", "request_id": "r-1", "choice": 0}
    attempt, again = player.digest(reply(request, "I think so.\nAnswer: 33.5", **usage, **origin))
    assert again is None
    assert attempt == Attempt(
        session=1,
        round=1,
        agent=5,
        step=0,
        attempt=0,
        messages=request.messages,
        format="text",
        seed=request.seed,
        text="I think so.\nAnswer: 33.5",
        finish_reason="stop",
        status="ok",
        value=33.5,
        reason="",
        final=True,
        error="",
        worker=2,
        **usage,
        **origin,
    )
    assert decode(encode(attempt), Attempt) == attempt


@pytest.mark.parametrize("status", BAD)
def test_a_reply_that_cannot_be_used_is_asked_for_again(status: Status) -> None:
    player = Player(context(), 1, 5)
    first = player.prepare(observe(1))
    attempt, second = player.digest(reply(first, **BAD[status]))
    assert (attempt.status, attempt.value, attempt.final) == (status.value, None, False)
    assert attempt.reason
    assert attempt.error == BAD[status].get("error", "")
    assert second is not None
    assert (second.attempt, second.step, second.round) == (1, 0, 1)
    assert second.seed != first.seed
    *same, user = second.messages
    assert same == first.messages[:-1]
    question, form = first.messages[-1].content, prompts.reply_format("step_by_step", "text")
    reminder = prompts.reminder(SPEC, status)
    expected = f"{question}\n\n{reminder}\n\n{form}" if reminder else question
    assert user.content == expected
    attempt, none = player.digest(reply(second, "Answer: 20"))
    assert none is None
    assert (attempt.status, attempt.value, attempt.attempt, attempt.final) == ("ok", 20, 1, True)


@pytest.mark.parametrize("status", BAD)
def test_the_last_attempt_is_what_it_is(status: Status) -> None:
    player = Player(context(attempts=3), 1, 5)
    request: Request | None = player.prepare(observe(1))
    attempts: list[Attempt] = []
    while request is not None:
        attempt, request = player.digest(reply(request, **BAD[status]))
        attempts.append(attempt)
    assert [attempt.final for attempt in attempts] == [False, False, True]
    assert {attempt.status for attempt in attempts} == {status.value}
    assert attempts[-1].value is None


def test_one_attempt_means_that_nothing_is_asked_again() -> None:
    player = Player(context(attempts=1), 1, 5)
    attempt, again = player.digest(reply(player.prepare(observe(1)), "hm"))
    assert attempt.final
    assert again is None


def test_reminders_do_not_pile_up_and_follow_the_last_reply() -> None:
    player = Player(context(attempts=5), 1, 5)
    request: Request | None = player.prepare(observe(1))
    asked = []
    for status in (Status.EMPTY, Status.OUT_OF_RANGE, Status.FAILED, Status.NO_ANSWER):
        assert request is not None
        _, request = player.digest(reply(request, **BAD[status]))
        assert request is not None
        asked.append(request.messages[-1].content)
    reasons = [Status.EMPTY, Status.OUT_OF_RANGE, Status.OUT_OF_RANGE, Status.NO_ANSWER]
    for text, status in zip(asked, reasons, strict=True):
        assert text.count("could not be used") == 1
        assert prompts.reminder(SPEC, status) in text
    assert "could not be used" not in play(player, "hm").messages[-1].content


def test_a_completion_of_another_request_is_refused() -> None:
    player = Player(context(), 1, 5)
    request = player.prepare(observe(1))
    _, second = player.digest(reply(request, "hm"))
    with pytest.raises(ValueError, match="no open request"):
        player.digest(reply(request, "Answer: 3"))
    assert second is not None
    player.digest(reply(second, "Answer: 3"))
    with pytest.raises(ValueError, match="no open request"):
        player.digest(reply(second, "Answer: 3"))


def test_without_memory_only_the_last_announcement_is_known() -> None:
    request = play(Player(context(memory="none"), 1, 5), "Answer: 41", "Answer: 42")
    assert roles(request) == ["system", "user"]
    text = request.messages[1].content
    assert text.startswith("In round 2 the average of all numbers was 20 and the target was 13.33.")
    assert "33.5" not in text
    assert "42" not in text


def test_memory_of_numbers_is_a_table() -> None:
    request = play(Player(context(memory="numbers"), 1, 5), "Well. Answer: 41", "no idea")
    assert roles(request) == ["system", "user"]
    assert request.messages[1].content.startswith(
        "The rounds so far:\n"
        "Round 1: average 33.5, target 22.33, your number 41\n"
        "Round 2: average 20, target 13.33, no valid number from you\n\n"
        "This is round 3."
    )


def test_memory_as_a_transcript() -> None:
    player = Player(context(memory="transcript"), 1, 5)
    first = player.prepare(observe(1)).messages[-1]
    request = play(player, "I think.\nAnswer: 41", "no idea")
    assert roles(request) == ["system", "user", "assistant", "user", "assistant", "user"]
    texts = [message.content for message in request.messages]
    assert texts[1] == first.content
    assert texts[2] == "I think.\nAnswer: 41"
    assert texts[3].startswith("In round 1 the average of all numbers was 33.5")
    assert texts[4] == "(no valid number in this round)"
    assert texts[5].startswith("In round 2 the average of all numbers was 20")
    assert not any("could not be used" in text for text in texts)


def test_a_transcript_shows_the_reply_that_counted() -> None:
    player = Player(context(memory="transcript"), 1, 5)
    _, second = player.digest(reply(player.prepare(observe(1)), "hm"))
    assert second is not None
    player.digest(reply(second, "Answer: 12"))
    texts = [message.content for message in player.prepare(observe(2)).messages]
    assert "Answer: 12" in texts
    assert "hm" not in texts


def test_memory_of_the_last_rounds() -> None:
    player = Player(context(memory=Last(last=1)), 1, 5)
    request = play(player, "Answer: 41", "Answer: 42")
    assert roles(request) == ["system", "user", "assistant", "user"]
    texts = [message.content for message in request.messages]
    assert texts[1].startswith("In round 1 the average")
    assert texts[2] == "Answer: 42"
    assert texts[3].startswith("In round 2 the average")


@pytest.mark.parametrize("memory", ["none", "numbers", "transcript", Last(last=1), Last(last=5)])
def test_a_rebuilt_player_asks_what_the_lost_one_would_have_asked(memory: Memory) -> None:
    asked = play(Player(context(memory=memory), 1, 5), "Answer: 41", "no idea")
    rebuilt = Player(context(memory=memory), 1, 5)
    rebuilt.recall(observe(1), 41.0, "Answer: 41")
    rebuilt.recall(observe(2), None, "no idea")
    assert rebuilt.prepare(observe(3)) == asked


def test_a_round_cannot_be_left_out() -> None:
    player = Player(context(), 1, 5)
    with pytest.raises(ValueError, match="round 2 comes before round 1"):
        player.prepare(observe(2))


def test_personas_are_shown_in_character_and_kept_nowhere_else() -> None:
    shown = Player(context(prompt="character"), 1, 5, "Ida is 71.").prepare(observe(1))
    assert shown.messages[0].content.endswith("Ida is 71.")
    hidden = Player(context(prompt="rational"), 1, 5, "Ida is 71.")
    assert not any("Ida" in message.content for message in hidden.prepare(observe(1)).messages)
    with pytest.raises(ValueError, match="persona"):
        Player(context(prompt="character"), 1, 5).prepare(observe(1))


def test_players_of_a_market_share_their_messages_and_sessions_do_not_mix() -> None:
    shared = context(memory="none")
    first, second = Player(shared, 1, 0), Player(shared, 1, 1)
    a, b = first.prepare(observe(1)), second.prepare(observe(1))
    assert a.messages[0] is b.messages[0]
    assert a.messages[1] is b.messages[1]
    other = Player(shared, 2, 0)
    with pytest.raises(ValueError, match="comes before"):
        other.prepare(observe(2, session=2))
    text = play(other, "Answer: 1").messages[1].content
    assert "33.5" in text


def test_a_session_is_forgotten_with_its_players() -> None:
    shared = context()
    play(Player(shared, 1, 0), "Answer: 1")
    gc.collect()
    fresh = Player(shared, 1, 0)
    with pytest.raises(ValueError, match="comes before"):
        fresh.prepare(observe(2))


def test_seeds_depend_on_what_a_request_is_for_alone() -> None:
    def seed(agent: int, session: int = 1, attempt: int = 0, **parts: Any) -> int:
        player = Player(context(**parts), session, agent)
        request: Request | None = player.prepare(observe(1, session))
        for _ in range(attempt):
            assert request is not None
            _, request = player.digest(reply(request, "hm"))
        assert request is not None
        return request.seed

    assert seed(5) == seed(5, memory="transcript", prompt="direct", worker=9)
    seeds = [seed(5), seed(6), seed(1029), seed(5, 2), seed(5, attempt=1), seed(5, seed=8)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)
