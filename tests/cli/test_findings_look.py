"""How findings look on a terminal."""

from __future__ import annotations

import io
import unicodedata
from dataclasses import replace

import pytest

from agentsim.cli.findings import print_findings, render
from agentsim.errors import ConfigError, Finding, Related

FINDING = Finding(
    code="unknown-key",
    message="unknown key `polulation`",
    file="scenarios/rumor.yaml",
    line=3,
    column=1,
    length=10,
    source="polulation: populations/village.yaml",
    expected="one of: game, model, name, population, rounds, seed, … and 4 more",
    hint="did you mean `population`? it is required and missing",
)
LOOK = """\
error[unknown-key]: unknown key `polulation`
  --> scenarios/rumor.yaml:3:1
   |
 3 | polulation: populations/village.yaml
   | ^^^^^^^^^^
   = expected one of: game, model, name, population, rounds, seed, … and 4 more
hint: did you mean `population`? it is required and missing
"""
END = "nothing was started. More: agentsim explain unknown-key\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def carets(source: str, marked: str) -> str:
    """What stands above the carets under a part of a line, by columns of a terminal."""
    column = source.index(marked) + 1
    text = render([Finding("c", "m", "f", 1, column, len(marked), source)])
    line, below = text.splitlines()[3:5]
    start, end = below.index("^"), below.rindex("^") + 1
    cells = ""
    for char in line:
        if unicodedata.combining(char):
            continue
        cells += char + ("\0" if unicodedata.east_asian_width(char) in "WF" else "")
    return cells[start:end].replace("\0", "")


def test_a_finding_looks_like_a_compilers() -> None:
    assert (
        render([FINDING])
        == LOOK + "\n1 finding; nothing was started. More: agentsim explain unknown-key\n"
    )


def test_findings_are_counted() -> None:
    text = render([FINDING, FINDING])
    assert (
        text
        == LOOK
        + "\n"
        + LOOK
        + "\n2 findings; nothing was started. More: agentsim explain unknown-key\n"
    )


def test_several_kinds_of_findings_are_explained_one_by_one() -> None:
    text = render([FINDING, replace(FINDING, code="missing-key")])
    assert text.endswith("\n2 findings; nothing was started. More: agentsim explain CODE\n")


def test_both_places_are_shown() -> None:
    first = Related("it stands here first", "s.yaml", 9, 1, 6, "agents: 4")
    named = Related("the file is named here", "hosts.yaml", 3, 8, 6, "hosts: s.yaml")
    twice = Finding("c", "m", "s.yaml", 10, 1, 6, "agents: 5", "e", "h", (first, named))
    lines = [
        "error[c]: m",
        "   --> s.yaml:10:1",
        "    |",
        " 10 | agents: 5",
        "    | ^^^^^^",
        "    = expected e",
        "note: it stands here first",
        "   --> s.yaml:9:1",
        "    |",
        "  9 | agents: 4",
        "    | ------",
        "note: the file is named here",
        "   --> hosts.yaml:3:8",
        "    |",
        "  3 | hosts: s.yaml",
        "    |        ------",
        "hint: h",
    ]
    assert render([twice]).splitlines()[: len(lines)] == lines


def test_a_place_in_another_file_is_shown_once_and_one_in_the_same_file_each_time() -> None:
    here = Related("it stands here first", "s.yaml", 100, 1, 6, "agents: 4")
    named = Related("the file is named here", "other.yaml", 100_000, 8, 6, "hosts: s.yaml")
    findings = [Finding("c", "m", "s.yaml", n, 1, 6, related=(here, named)) for n in (101, 102)]
    text = render(findings)
    assert text.count("it stands here first") == 2
    assert text.count("the file is named here") == 1
    assert "\n    --> s.yaml:102:1\n" in text, "the margin fits what is shown"


def test_very_many_are_cut() -> None:
    text = render([FINDING] * 150)
    assert text.count("error[") == 100
    assert "\n150 findings (the first 100 are shown); nothing was started. More:" in text


def test_the_margin_grows_with_the_line_number() -> None:
    text = render([Finding("c", "m", "f", 1234, 3, 1, "a: b", "more")])
    assert text.splitlines()[:6] == [
        "error[c]: m",
        "     --> f:1234:3",
        "      |",
        " 1234 | a: b",
        "      |   ^",
        "      = expected more",
    ]


def test_without_a_place() -> None:
    assert render([Finding("c", "m", "f")]).startswith("error[c]: m\n  --> f\n\n")


def test_a_flag_has_no_line() -> None:
    text = render([Finding("c", "m", "--set", 0, 9, 3, "--set a=abc")])
    assert text.splitlines()[1:5] == ["  --> --set", "   |", "   | --set a=abc", "   |         ^^^"]


@pytest.mark.parametrize(
    ("source", "marked", "shown"),
    [
        ("a: many", "many", "many"),
        ("認知: 階層, b: many", "many", "many"),
        ("認知: 階層, b: many", "階層", "階層"),
        ("e\u0301te\u0301: many", "many", "many"),
        ("a: e\u0301te\u0301, b", "e\u0301te\u0301", "ete"),
        ("a:\tmany", "many", "many"),
        ("a:\t\t認\tmany", "many", "many"),
        ("\tb: 1", "\t", "    "),
        ("a\u200bb: many", "many", "many"),
        ("x" * 500 + " many " + "y" * 500, "many", "many"),
        ("漢" * 300 + " many", "many", "many"),
    ],
)
def test_carets_stand_under_what_is_meant(source: str, marked: str, shown: str) -> None:
    if "\u200b" in source:  # takes no column
        text = render([Finding("c", "m", "f", 1, source.index(marked) + 1, 4, source)])
        assert text.splitlines()[4] == "   |     ^^^^"
    else:
        assert carets(source, marked) == shown


def test_long_lines_are_cut_on_both_sides() -> None:
    source = "x" * 50_000 + "many" + "y" * 50_000
    text = render([Finding("c", "m", "f", 1, 50_001, 4, source)])
    line = text.splitlines()[3]
    assert len(line) < 140
    assert line.startswith(" 1 | …x")
    assert line.endswith("y…")


def test_carets_end_with_the_line() -> None:
    text = render([Finding("c", "m", "f", 1, 4, 1000, "a: b")])
    assert text.splitlines()[4] == "   |    ^"


def test_a_place_behind_the_end_has_a_caret() -> None:
    text = render([Finding("c", "m", "f", 1, 9, 1, "a: [")])
    assert text.splitlines()[4] == "   |     ^"


@pytest.mark.parametrize("bad", ["\x1b[31m", "\x07", "\x9b", "\u202e", "\u2066", "\x7f"])
def test_texts_cannot_steer_a_terminal(bad: str) -> None:
    other = Related(f"n{bad}", f"f{bad}", 1, 1, 1, f"s{bad}")
    text = render(
        [Finding("c", f"m{bad}", f"f{bad}", 1, 1, 1, f"s{bad}", f"e{bad}", f"h{bad}", (other,))]
    )
    assert bad[0] not in text
    assert text.count("\ufffd") == 8


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    error = ConfigError((FINDING,))
    file, terminal = io.StringIO(), Terminal()
    print_findings(error, file)
    print_findings(error, terminal)
    assert "\x1b" not in file.getvalue()
    assert "\x1b[1;31merror[unknown-key]\x1b[0m" in terminal.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Terminal()
    print_findings(error, plain)
    assert plain.getvalue() == file.getvalue()


def test_a_stream_of_another_encoding_gets_what_it_can_take() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    print_findings(ConfigError((FINDING,)), stream)
    stream.flush()
    assert b"seed, ? and 4 more" in raw.getvalue()
