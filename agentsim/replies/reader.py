"""From the text of a reply to its status and value: the order of the rules.

1. Thinking is left out. What is then blank is `empty`, or `truncated` where the reply was cut.
2. A JSON object speaks for the reply; it is never read as prose, and never repaired.
3. Everything else is prose: see `prose`.
"""

from __future__ import annotations

from typing import Final

from agentsim.replies.clean import is_blank
from agentsim.replies.numbers import to_float
from agentsim.replies.objects import Literal, Shape, field_values
from agentsim.replies.outcome import Outcome, agree, no_answer, of_number, truncated
from agentsim.replies.prose import read_declared, read_prose
from agentsim.replies.rule import Rule, factors
from agentsim.replies.segments import Segments, split
from agentsim.replies.status import Reading, Status
from agentsim.replies.vocabulary import word_set

_CUT: Final = word_set(
    "length max_tokens max_output_tokens model_length content_filter abort aborted cancelled "
    "canceled timeout incomplete"
)
"""Finish reasons after which the end of the reply is missing."""


def read(
    text: str,
    *,
    finish_reason: str,
    low: float,
    high: float,
    target: str,
    format: str = "text",
) -> Reading:
    """Reads one reply. Never raises, and takes time linear in the length of the text.

    Args:
        text: what the model wrote.
        finish_reason: why it stopped, in the words of the server, e.g. `stop` or `length`.
        low: smallest number that may be chosen.
        high: largest number that may be chosen.
        target: the game's rule, e.g. `2/3 * mean`; a reply that restates its factor is no answer.
        format: `json` where the server was told to write one JSON object, else `text`.

    Returns:
        The status, the value where it is `ok`, and why.
    """
    rule = Rule(low, high, factors(target))
    is_cut = finish_reason.lower() in _CUT
    return _read(text, rule, is_cut=is_cut, is_json=format == "json").reading()


def _read(text: str, rule: Rule, *, is_cut: bool, is_json: bool) -> Outcome:
    parts = split(text)
    if parts.is_thinking and is_cut:
        return truncated("cut while thinking")
    if not parts.objects and is_blank(parts.prose):
        if is_cut:
            return truncated("cut before the answer began")
        return Outcome(Status.EMPTY, None, "there is no text outside the thinking")
    if parts.objects:
        return _read_objects(parts, rule, is_cut=is_cut)
    if is_json:
        return truncated("cut before the object") if is_cut else no_answer("no JSON object")
    return read_prose(parts.prose, rule, is_cut=is_cut)


def _read_objects(parts: Segments, rule: Rule, *, is_cut: bool) -> Outcome:
    """Every object's field, and what the prose around declares, must be the same number."""
    shapes = {found.shape for found in parts.objects}
    if Shape.CUT in shapes:
        return truncated("cut in a JSON object") if is_cut else no_answer("a JSON object is cut")
    if Shape.BROKEN in shapes:
        return no_answer("a JSON object is broken")
    outcomes = [
        _read_value(value, rule) for found in parts.objects for value in field_values(found.members)
    ]
    declared = read_declared(parts.prose, rule)
    return agree(outcomes if declared is None else [*outcomes, declared])


def _read_value(value: object, rule: Rule) -> Outcome:
    """The answer in one value of a JSON object."""
    if isinstance(value, Literal):
        if value.text == "NaN":
            return no_answer("not a number")
        if value.text.endswith("Infinity"):
            return Outcome(Status.OUT_OF_RANGE, float(value.text), "the answer is infinite")
        return of_number(to_float(value.text), rule, "the number of a JSON object")
    if isinstance(value, str):
        return (
            no_answer("blank")
            if is_blank(value)
            else read_prose(value, rule, is_cut=False, is_answer=True)
        )
    if isinstance(value, list) and value and not _is_object(value):
        return agree([_read_value(one, rule) for one in value])
    return no_answer("the field holds no number")


def _is_object(value: list[object]) -> bool:
    return any(isinstance(one, tuple) for one in value)
