"""Every reply of the shipped sample, and the written cases by kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reply_cases import KINDS, Kind

from agentsim.replies import STATUSES, Status, read

SAMPLE = Path(__file__).parents[1] / "data" / "replies.jsonl"
LINES = [json.loads(line) for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
CASES = [(kind, *case) for kind in KINDS for case in kind.cases]


@pytest.mark.parametrize("line", LINES, ids=[line["note"] for line in LINES])
def test_line_of_the_sample(line: dict[str, object]) -> None:
    reading = read(
        str(line["reply"]),
        finish_reason=str(line["finish_reason"]),
        low=float(str(line["low"])),
        high=float(str(line["high"])),
        target=str(line["target"]),
    )
    assert (reading.status, reading.value) == (line["status"], line["value"])


@pytest.mark.parametrize(
    ("kind", "reply", "expected"),
    CASES,
    ids=[f"{kind.name}-{text!a}" for kind, text, _ in CASES],
)
def test_written_case(kind: Kind, reply: str, expected: float | str) -> None:
    reading = read(
        reply,
        finish_reason=kind.finish_reason,
        low=kind.low,
        high=kind.high,
        target=kind.target,
    )
    found = reading.value if reading.status is Status.OK else str(reading.status)
    assert found == expected, f"{kind.reason}; read as {reading}"
    assert reading.reason


def test_order_of_the_statuses() -> None:
    assert [str(status) for status in STATUSES] == [
        "ok", "truncated", "empty", "no_answer", "ambiguous", "out_of_range", "failed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "finish_reason", "expected"),
    [
        ('{"number": 22}', "stop", 22),
        ("22", "stop", Status.NO_ANSWER),
        ("My answer is 22", "stop", Status.NO_ANSWER),
        ("22", "length", Status.TRUNCATED),
        ('{"number": 2', "length", Status.TRUNCATED),
        ("", "stop", Status.EMPTY),
        ('<think>50</think>{"number": 22}', "stop", 22),
    ],
)
def test_json_format_never_reads_prose(
    reply: str, finish_reason: str, expected: float | Status
) -> None:
    reading = read(
        reply, finish_reason=finish_reason, low=0, high=100, target="2/3 * mean", format="json"
    )
    assert (reading.value if reading.status is Status.OK else reading.status) == expected


@pytest.mark.parametrize("finish_reason", ["length", "MAX_TOKENS", "content_filter", "abort"])
def test_truncated_when_the_server_cut_the_reply(finish_reason: str) -> None:
    reading = read(
        "The answer is 2", finish_reason=finish_reason, low=0, high=100, target="2/3 * mean"
    )
    assert reading.status is Status.TRUNCATED


@pytest.mark.parametrize("finish_reason", ["stop", "eos", "tool_calls", "end_turn", ""])
def test_ok_when_the_reply_ended_by_itself(finish_reason: str) -> None:
    reading = read(
        "The answer is 2", finish_reason=finish_reason, low=0, high=100, target="2/3 * mean"
    )
    assert reading.value == 2
