"""YAML with positions: what words mean, where they stand, what is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from agentsim.config.parse import MAX_DEPTH, MAX_NODES, parse
from agentsim.config.tree import Mapping, Node, document, find, key_place, place, plain, put
from agentsim.errors import Finding

WORDS = """
no yes on off No Y n 010 0x1f 0o17 1_000 12:30:00 2024-01-31 1,5 .nan .inf -.INF 1e999 1.2.3 = 0b1 +
"""


def read(text: str) -> tuple[Node | None, list[Finding]]:
    return parse(text, document("f.yaml", text))


def value(text: str) -> Any:
    node, findings = read(text)
    assert not findings
    assert node is not None
    return plain(node)


def only(text: str) -> Finding:
    (finding,) = read(text)[1]
    return finding


@pytest.mark.parametrize("word", WORDS.split())
def test_words_stay_what_the_author_wrote(word: str) -> None:
    assert value(f"a: {word}") == {"a": word}


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("1e-4", 1e-4),
        ("1E3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0.25", -0.25),
        ("+3", 3),
        ("0", 0),
        ("123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_numbers_are_numbers(word: str, number: float) -> None:
    result = value(f"a: {word}")["a"]
    assert result == number
    assert type(result) is type(number)


def test_digits_without_end_stay_text() -> None:
    digits = "9" * 5000
    assert value(f"a: {digits}") == {"a": digits}


@pytest.mark.parametrize("text", ["a:", "a: ~", "a: null", "a: NULL"])
def test_nothing_is_null(text: str) -> None:
    assert value(text) == {"a": None}


def test_quotes_and_tags_make_text() -> None:
    assert value("a: '1'\nb: \"true\"\nc: !!str 5\nd: ! 7\ne: true") == {
        "a": "1",
        "b": "true",
        "c": "5",
        "d": "7",
        "e": True,
    }


def test_keys_are_text() -> None:
    assert value("{0: a, no: b, 1e3: c, ~: d, true: e, '': f}") == {
        "0": "a",
        "no": "b",
        "1e3": "c",
        "~": "d",
        "true": "e",
        "": "f",
    }


def test_values_and_keys_know_where_they_stand() -> None:
    node, _ = read("a: 1\nb:\n  - {x: 'é漢', y: [1, 2]}\n  - long text\n    goes on\n")
    assert node is not None
    spots = {
        path: (where.line, where.column, where.length)
        for path in ((), ("a",), ("b", 0), ("b", 0, "x"), ("b", 0, "y"), ("b", 1), ("b",))
        for where in (place(node, path),)
    }
    assert spots == {
        (): (0, 0, 1),
        ("a",): (0, 3, 1),
        ("b",): (1, 0, 1),
        ("b", 0): (2, 4, 20),
        ("b", 0, "x"): (2, 8, 4),
        ("b", 0, "y"): (2, 17, 6),
        ("b", 1): (3, 4, 9),
    }
    where = key_place(node, ("b", 0, "y"))
    assert where is not None
    assert (where.line, where.column) == (2, 14)
    assert key_place(node, ("b", 0)) is None
    assert place(node, ("b", 0, "z", 3)) == place(node, ("b", 0))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028", "\x85"])
def test_every_line_end_of_yaml_counts(end: str) -> None:
    text = f"a: 1{end}b: [x]{end}c: 3"
    node, _ = read(text)
    assert node is not None
    where = place(node, ("b",))
    assert (where.line, where.column, where.document.source(1)) == (1, 3, "b: [x]")


def test_aliases_and_merges_are_followed() -> None:
    text = "a: &a {x: 1, y: 2}\nb: *a\nc: {<<: *a, y: 3}\nd: {<<: [*a, {z: 4, x: 5}]}\n"
    assert value(text) == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 2},
        "c": {"y": 3, "x": 1},
        "d": {"x": 1, "y": 2, "z": 4},
    }


def test_an_anchor_may_be_set_again() -> None:
    assert value("a: &n 1\nb: *n\nc: &n 2\nd: *n") == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_a_duplicate_names_the_first() -> None:
    node, (finding,) = read("a: 1\nb: {x: 1, x: 2}\n")
    assert (finding.code, finding.line, finding.column) == ("duplicate-key", 2, 11)
    (first,) = finding.related
    assert (first.file, first.line, first.column) == ("f.yaml", 2, 5)
    assert node is not None
    assert plain(node) == {"a": 1, "b": {"x": 1}}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: 1\n\tb: 2", 2, 1),
        ("a:\n\tb: 2", 2, 1),
        ("a: [1", 1, 4),
        ("a: 'x", 1, 4),
        ("a: b: c", 1, 5),
        ("a: 1\n- b", 2, 1),
        ("a: @b", 1, 4),
        ("a: *b", 1, 4),
        ("a: &b [*b]", 1, 8),
        ("a: 1\n---\nb: 2", 2, 1),
        ("a: \x00", 1, 4),
        ("\n\n  \x1b", 3, 3),
        ("a: !!python/name:os.system x", 1, 4),
        ("[a]: 1", 1, 1),
        ("a: \n  ? [b]\n  : 1", 2, 5),
        (": 1", 1, 1),
        ("a: {<<: 1}", 1, 9),
        ('a: "\\q"', 1, 5),
        ("a: [", 1, 5),
        ("a: 1\nb: ]", 2, 4),
    ],
)
def test_what_is_not_our_yaml_is_one_finding(text: str, line: int, column: int) -> None:
    finding = only(text)
    assert (finding.code, finding.line, finding.column) == ("yaml-syntax", line, column)
    assert "not YAML" not in finding.message  # in words of its own


def bomb(width: int, depth: int) -> str:
    lines = [f"a0: &a0 [{', '.join(['x'] * width)}]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, depth)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        bomb(10, 30),
        "a: &a {x: 1, y: 2, z: 3}\n"
        + "".join(f"b{i}: &b{i} {{<<: *a, x: [*a, *a]}}\n" for i in range(3))
        + "c: ["
        + "*b0, " * MAX_NODES
        + "]",
        "a: [" + "1, " * (MAX_NODES + 1) + "]",
        "[" * 500_000,
        "{a: " * 500_000,
        "- " * 500_000,
        "? " * 500_000,
        "[" * (MAX_DEPTH + 1),
        "\n".join("  " * i + "a:" for i in range(MAX_DEPTH + 2)),
        "".join(f"a{i}: &a{i} [*a{i - 1}]\n" if i else "a0: &a0 [x]\n" for i in range(60)),
    ],
    ids=["bomb", "merges", "many", "lists", "maps", "dashes", "marks", "just", "lines", "chain"],
)
def test_too_much_is_refused_soon(text: str) -> None:
    start = time.monotonic()
    finding = only(text)
    assert finding.code == "too-large"
    assert time.monotonic() - start < 20


def test_the_deepest_that_is_allowed_can_be_read() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    node, findings = read(text)
    assert not findings
    assert node is not None
    assert node.height == MAX_DEPTH + 1
    plain(node)


def test_put_replaces_makes_and_refuses() -> None:
    node, _ = read("a: {b: 1}\nc: [1, 2]\nd: word\n")
    new, _ = read("9")
    assert node is not None
    assert new is not None
    here = place(new, ())

    def put_at(*names: str) -> Any:
        changed = put(node, tuple((name, here) for name in names), new)
        return None if changed is None else plain(changed)

    assert put_at("a", "b") == {"a": {"b": 9}, "c": [1, 2], "d": "word"}
    assert put_at("a", "x", "y") == {"a": {"b": 1, "x": {"y": 9}}, "c": [1, 2], "d": "word"}
    assert put_at("c", "1") == {"a": {"b": 1}, "c": [1, 9], "d": "word"}
    assert put_at("d", "e") == {"a": {"b": 1}, "c": [1, 2], "d": {"e": 9}}
    assert put_at("c", "2") is None
    assert put_at("c", "x") is None
    assert plain(node) == {"a": {"b": 1}, "c": [1, 2], "d": "word"}


def test_an_alias_and_its_anchor_change_apart() -> None:
    node, _ = read("a: &a {x: 1}\nb: *a\n")
    new, _ = read("2")
    assert node is not None
    assert new is not None
    changed = put(node, (("b", place(new, ())), ("x", place(new, ()))), new)
    assert changed is not None
    assert plain(changed) == {"a": {"x": 1}, "b": {"x": 2}}
    assert isinstance(find(changed, "b"), Mapping)
