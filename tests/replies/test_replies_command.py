"""`agentsim replies FILE`: the function behind the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentsim.cli.replies import replies
from agentsim.errors import UserError

GAME = {"low": 0, "high": 100, "target": "2/3 * mean"}


def _file(folder: Path, content: bytes) -> Path:
    file = folder / "replies.jsonl"
    file.write_bytes(content)
    return file


def _line(**fields: object) -> bytes:
    return json.dumps(GAME | fields).encode()


def test_one_object_a_line_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = Path(__file__).parents[1] / "data" / "replies.jsonl"
    expected = [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]
    replies(sample)
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["status"], row["value"]) for row in shown] == [
        (row["status"], row["value"]) for row in expected
    ]
    assert all(list(row) == ["status", "value", "reason"] for row in shown)


def test_byte_order_mark_blank_lines_and_unknown_keys_are_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = b"\xef\xbb\xbf" + _line(reply="22") + b"\r\n\n  \n" + _line(reply="33", note=[1, {}])
    replies(_file(tmp_path, content))
    values = [json.loads(line)["value"] for line in capsys.readouterr().out.splitlines()]
    assert values == [22, 33]


def test_surrogates_and_line_separators_inside_a_reply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = (
        _line(reply="\ud800 22")
        + b"\n"
        + json.dumps(GAME | {"reply": "My answer: 22\u2028"}, ensure_ascii=False).encode()
    )
    replies(_file(tmp_path, content))
    out = capsys.readouterr().out
    assert out.isascii()
    assert [json.loads(line)["value"] for line in out.splitlines()] == [22, 22]


def test_an_integer_of_any_length_elsewhere_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies(_file(tmp_path, _line(reply="22")[:-1] + b', "id": ' + b"9" * 5000 + b"}"))
    assert json.loads(capsys.readouterr().out)["value"] == 22


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not JSON"),
        (b"[1]", "expected a JSON object"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"reply": "22"}', "`low` is missing"),
        (_line(), "`reply` is missing"),
        (_line(reply=22), "`reply` must be a text"),
        (_line(reply=None), "`reply` must be a text"),
        (_line(reply="22", low="0"), "`low` must be a number"),
        (_line(reply="22", high=True), "`high` must be a number"),
        (_line(reply="22", low=100), "`low` must be below `high`"),
        (_line(reply="22", format="xml"), "`format` must be"),
        (_line(reply="22", finish_reason=1), "`finish_reason` must be a text"),
    ],
)
def test_user_error_names_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: bytes, message: str
) -> None:
    with pytest.raises(UserError, match=rf"replies\.jsonl:3: .*{message}"):
        replies(_file(tmp_path, _line(reply="22") + b"\n\n" + line))
    assert capsys.readouterr().out == ""  # all lines are checked before the first is read


def test_user_error_when_the_file_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        replies(tmp_path / "none.jsonl")
