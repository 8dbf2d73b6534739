"""Prompts: each treatment changes what it is about, and nothing else."""

from __future__ import annotations

import json
from itertools import product
from typing import Any, get_args

import pytest

from agentsim.config.scenario import Prompt
from agentsim.games.guess_average import GuessAverageSpec, prompts
from agentsim.replies import Status

PROMPTS: tuple[Prompt, ...] = get_args(Prompt)
PERSONA = "Ida is 71 years old and was a pharmacist."


def game(**parts: Any) -> GuessAverageSpec:
    text = json.dumps({"type": "guess_average", **parts})
    return GuessAverageSpec.model_validate_json(text, strict=True)


SPEC = game()


def test_the_whole_prompt_of_a_direct_question() -> None:
    assert prompts.system(SPEC, 40, "direct", None) == (
        "You are one of 40 players in a guessing game. It is played in rounds. In each round:\n"
        "- Every player picks a number from 0 to 100. Decimals are allowed. Nobody knows what the "
        "others pick.\n"
        "- The target is two thirds of the average of all numbers. Your own number counts too.\n"
        "- The player whose number is closest to the target wins a prize of 100 points. If there "
        "are several winners, they share the prize.\n"
        "- After the round everybody is told the average of all numbers and the target."
    )
    assert prompts.question(SPEC, 1, {}) == (
        "This is round 1. Which number from 0 to 100 do you pick?"
    )


def test_rules_stand_first_and_are_the_same_for_all() -> None:
    rules = prompts.system(SPEC, 40, "direct", None)
    for prompt in PROMPTS:
        text = prompts.system(SPEC, 40, prompt, PERSONA)
        assert text.startswith(rules)
        assert (text == rules) == (prompt == "direct")


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_persona_appears_in_character_alone_and_last(prompt: Prompt) -> None:
    text = prompts.system(SPEC, 40, prompt, PERSONA)
    assert text.endswith(PERSONA) == (prompt == "character")
    assert ("Ida" in text) == (prompt == "character")


def test_character_needs_a_persona() -> None:
    with pytest.raises(ValueError, match="persona"):
        prompts.system(SPEC, 40, "character", None)


def test_treatments_differ() -> None:
    texts = {prompts.system(SPEC, 40, prompt, PERSONA) for prompt in PROMPTS}
    assert len(texts) == len(PROMPTS)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"range": [1, 50]}, "picks a number from 1 to 50."),
        ({"range": [0, 0.5]}, "picks a number from 0 to 0.5."),
        ({"target": "5 + mean / 2"}, "The target is 5 plus half of the average of all numbers."),
        ({"winners": {"prize": 0}}, "closest to the target wins.\n"),
        ({"winners": {"prize": 12.5}}, "a prize of 12.5 points"),
        ({"winners": {"ties": "each"}}, "each gets the whole prize."),
        ({"winners": {"ties": "draw"}}, "one of them is drawn by lot and wins alone."),
        ({"winners": {"band": 1.5}}, "at most 1.5 farther from the target than the closest one"),
        ({"announce": []}, "After the round nothing is announced."),
        ({"announce": ["median"]}, "everybody is told the median of all numbers."),
        (
            {"announce": ["mean", "target", "winning_guess"]},
            "told the average of all numbers, the target and the winning number.",
        ),
    ],
)
def test_rules_follow_the_file(parts: dict[str, Any], words: str) -> None:
    assert words in prompts.system(game(**parts), 40, "direct", None)


def test_a_single_player_is_told_so() -> None:
    assert "the only player of a guessing game" in prompts.system(SPEC, 1, "direct", None)


def test_the_last_announcement_is_told_in_plain_numbers() -> None:
    announced = {"mean": 33.333333333333336, "target": 22.22222222222222}
    assert prompts.question(SPEC, 2, announced) == (
        "In round 1 the average of all numbers was 33.33 and the target was 22.22.\n\n"
        "This is round 2. Which number from 0 to 100 do you pick?"
    )


def test_nothing_is_told_where_nothing_is_announced() -> None:
    assert prompts.question(game(announce=[]), 2, {}).startswith("This is round 2.")
    assert "nobody picked a valid number" in prompts.question(SPEC, 2, {})


def test_names_that_are_not_announced_are_not_told() -> None:
    text = prompts.question(game(announce=["target"]), 2, {"target": 20.0, "mean": 30.0})
    assert "the target was 20." in text
    assert "average" not in text


def test_earlier_rounds_as_a_table() -> None:
    spec = game(announce=["mean", "median", "target", "winning_guess"])
    announced = [
        {"mean": 30.0, "median": 28.125, "target": 20.0, "winning_guess": 19.5},
        {},
    ]
    assert prompts.table(spec, announced, [40.0, None]) == (
        "The rounds so far:\n"
        "Round 1: average 30, median 28.12, target 20, winning number 19.5, your number 40\n"
        "Round 2: no valid number from you"
    )
    assert prompts.table(spec, [], []) == ""


@pytest.mark.parametrize("prompt", PROMPTS)
def test_schemas_have_no_bounds_and_no_room_for_reasoning_when_direct(prompt: Prompt) -> None:
    names = ["number"] if prompt == "direct" else ["reasoning", "number"]
    schema = prompts.schema(prompt)
    assert schema["required"] == names
    assert list(schema["properties"]) == names  # reasoning is written before the number
    assert schema["additionalProperties"] is False
    assert schema["properties"]["number"] == {"type": "number"}
    assert set(schema) == {"type", "properties", "required", "additionalProperties"}


@pytest.mark.parametrize(("prompt", "format"), list(product(PROMPTS, ("json", "text"))))
def test_reply_formats_ask_for_what_is_read(prompt: Prompt, format: prompts.Format) -> None:
    text = prompts.reply_format(prompt, format)
    assert ("reasoning" in text) == (prompt != "direct")
    assert ("JSON" in text) == (format == "json")
    assert text.endswith("Answer: <your number>") == (format == "text" and prompt != "direct")
    assert "100" not in text  # an example number would be an anchor


@pytest.mark.parametrize("status", list(Status))
def test_reminders_say_what_was_wrong(status: Status) -> None:
    text = prompts.reminder(SPEC, status)
    assert bool(text) == (status not in (Status.OK, Status.FAILED))
    assert status is not Status.OUT_OF_RANGE or "from 0 to 100" in text


def test_reminders_differ() -> None:
    texts = [prompts.reminder(SPEC, status) for status in Status]
    assert len({text for text in texts if text}) == 5
