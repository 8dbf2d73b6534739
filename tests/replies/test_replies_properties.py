"""What holds for every text: no crash, no value that is not one, no more than linear time."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentsim.replies import Reading, Status, read

_PIECES = st.sampled_from(
    [
        "22", "33,3", "1,000", "-", "–", "−5", "٣٣", "２２", ".", ",", " ", "\n",
        "\n\n", ":", "Answer",
        "my number is", "I choose", "not", "if", "others", "average",
        "\\boxed{", "}", "{", '"number"',
        "\\frac{66}{2}", "\\frac", "2/3", "22/100", "<think>", "</think>",
        "```", "%", "or", "twenty",
        "-two", "e400", "1e", "²", "\u200b", "\ud800", "*", "**", "####",
        "wait", "no", "(", ")", "[",
        "]", "~~", "1.", "round 3", "$", "→", "=", "≈", "x", "is", "&#50;", "<answer>", "</answer>",
    ]
)  # fmt: skip
_TEXTS = st.one_of(
    st.text(), st.lists(_PIECES, max_size=30).map("".join), st.lists(_PIECES).map(" ".join)
)
_RANGES = st.sampled_from([(0.0, 100.0), (0.0, 1.0), (-10.0, 10.0), (1.0, 10_000.0), (-3.5, -1.5)])
_TARGETS = st.sampled_from(
    ["2/3 * mean", "5 + mean / 2", "median", "51/100 * mean", "1/0 * mean", ""]
)


def _read(text: str, low: float = 0, high: float = 100, **others: str) -> Reading:
    arguments = {"finish_reason": "stop", "target": "2/3 * mean"} | others
    return read(text, low=low, high=high, **arguments)  # type: ignore[arg-type]


@given(
    _TEXTS,
    _RANGES,
    _TARGETS,
    st.sampled_from(["stop", "length"]),
    st.sampled_from(["text", "json"]),
)
@example("\\boxed{\\frac{1}{0}}", (0.0, 100.0), "2/3 * mean", "stop", "text")
@example("\\frac{3}{1. \\boxed{ 1 } \\boxed{2} ,}", (0.0, 100.0), "2/3 * mean", "stop", "text")
@example("[1,5'000]", (0.0, 100.0), "2/3 * mean", "stop", "text")
@example("9" * 5000, (0.0, 100.0), "2/3 * mean", "stop", "text")
@example("1e99999999999999999999", (0.0, 100.0), "1e9/3 * mean", "stop", "text")
def test_value_only_when_ok_and_within_the_range(
    text: str, bounds: tuple[float, float], target: str, finish_reason: str, format: str
) -> None:
    low, high = bounds
    reading = _read(text, low, high, target=target, finish_reason=finish_reason, format=format)
    assert reading.status is not Status.FAILED
    assert (reading.value is not None) == (reading.status is Status.OK)
    if reading.value is not None:
        assert math.isfinite(reading.value)
        assert low <= reading.value <= high
    assert reading == _read(
        text, low, high, target=target, finish_reason=finish_reason, format=format
    )


@given(_TEXTS, st.sampled_from([" ", "\n", " \n\n", "\t"]))
def test_same_reading_when_blanks_are_appended(text: str, blanks: str) -> None:
    before, after = _read(text), _read(text + blanks)
    assert (before.status, before.value) == (after.status, after.value)


@given(
    st.decimals(0, 100, places=2),
    st.sampled_from(["٠١٢٣٤٥٦٧٨٩", "०१२३४५६७८९", "０１２３４５６７８９"]),
)
def test_a_number_in_any_script_is_the_same_number(number: object, digits: str) -> None:
    written = str(number)
    translated = written.translate({ord(str(i)): digit for i, digit in enumerate(digits)})
    assert _read(f"My answer: {written}").value == float(written)
    assert _read(f"My answer: {translated}").value == float(written)


@given(st.floats(0, 100))
def test_json_numbers_are_read_exactly(number: float) -> None:
    assert _read(f'{{"number": {number!r}}}').value == number


@given(_TEXTS)
def test_nothing_but_a_suffix_is_needed_after_thinking(text: str) -> None:
    if "</" not in text and "<" not in text and not text.rstrip().endswith("<"):
        assert _read(f"<think>{text}</think>22").value == 22


SHAPES = {
    "digits": "1", "numbers": "1 ", "letters": "a", "answers": "Answer: 1 ", "cues": "answer ",
    "open objects": '{"a":', "open braces": "{", "close braces": "}", "objects": '{"number":1}',
    "think": "<think>", "unthink": "</think>", "open boxes": "\\boxed{", "boxes": "\\boxed{1}",
    "fractions": "\\frac{1}{2} ", "open fractions": "\\frac{", "commas": "1,", "points": "1.",
    "thousands": "1,000,", "hyphens": "-", "stars": "*", "quotes": '"', "backslashes": "\\",
    "lines": "\n1", "choices": "I choose 1. ", "words": "twenty-", "ands": "one hundred and ",
    "tags": "<a", "parentheses": "( ", "negations": "not ", "arabic": "٣", "invisible": "\u200b",
    "exponents": "1e5", "waits": "wait ", "ranges": "between 0 and 100 ", "differences": "1-",
    "apostrophes": "a'", "marks": "\u0301", "surrogates": "\ud800",
    "labels": "my final answer for ",
    "cut keys": '"a": ', "equations": "= 1 ", "beliefs": "people think ", "no-break": "1\u00a0000",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_time_is_linear_in_the_length(shape: str) -> None:
    """Four times the text may take about four times as long; quadratic would be sixteen."""

    def seconds(length: int) -> float:
        text = SHAPES[shape] * (length // len(SHAPES[shape]))
        best = math.inf
        for _ in range(2):
            start = time.process_time()
            _read(text)
            best = min(best, time.process_time() - start)
        return best

    small, large = seconds(12_500), seconds(50_000)
    assert large < 10 * small + 0.02


@pytest.mark.parametrize(
    "text",
    [
        '{"number": ' + "1" * 1_000_000 + "}",
        '{"number": ' + "[" * 1_000_000,
        '{"number": ' + "[" * 500_000 + "]" * 500_000 + "}",
        '{"a":' * 200_000 + "1" + "}" * 200_000,
        "0." + "3" * 1_000_000,
        "a" * 1_000_000,
        "\\boxed{" * 140_000 + "1" + "}" * 140_000,
    ],
    ids=[
        "long integer",
        "open lists",
        "deep lists",
        "deep objects",
        "decimals",
        "word",
        "deep boxes",
    ],
)
def test_a_million_characters(text: str) -> None:
    start = time.process_time()
    reading = _read(text)
    assert time.process_time() - start < 20
    assert reading.status in {Status.OK, Status.NO_ANSWER, Status.OUT_OF_RANGE, Status.AMBIGUOUS}
