"""No text makes the loader fail in another way than by findings."""

from __future__ import annotations

import tempfile
from pathlib import Path

from config_samples import GAMES, POPULATION, SCENARIO, write
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsim.cli.findings import render
from agentsim.config import CODES, load
from agentsim.errors import ConfigError

WORDS = """
[ ] { } : , - ? & * ! | > ' " % @ ` # ~ << null true 0 -1 1.5 1e999 .nan no 010 *a &a !!str
name agents rounds game type coin model backend random dummy population categories integer
normal low high given sweep api_key population.yaml hosts --- ... é 漢
"""
yamlish = st.lists(
    st.one_of(
        st.sampled_from(WORDS.split()),
        st.sampled_from([" ", "\n", "\n  ", ": ", "- ", "\t", "\r\n", "\u2028", "\x00", "\x85"]),
        st.text(max_size=5),
    ),
    max_size=60,
).map("".join)
LINES = [*SCENARIO.splitlines(), "population: population.yaml", "prompt: character"]
LINES += ["memory: {last: 2}", "limits: {tokens: 5}", "hosts: hosts.yaml", "compare: nagel-1995"]


@st.composite
def broken(draw: st.DrawFn, text: str) -> str:
    """A text with a piece cut out and another put in."""
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 12)))
    return text[:start] + draw(yamlish) + text[end:]


Overrides = list[tuple[str, str, str]]


def check(scenario: str, population: str, hosts: str, overrides: Overrides) -> None:
    def encode(text: str) -> bytes:
        return text.encode("utf-8", "surrogatepass")

    texts = {"population": encode(population), "hosts": encode(hosts)}
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), scenario=encode(scenario), **texts)
        found = None
        try:
            load(path, games=GAMES, overrides=overrides)
        except ConfigError as error:
            found = error.findings
    if found is None:
        return
    assert found
    for item in found:
        assert item.code in CODES
        assert min(item.line, item.column, item.length - 1) >= 0
        assert item.message
        assert "Input should" not in item.message
    assert "; nothing was started. More: agentsim explain " in render(found).splitlines()[-1]


@settings(deadline=None, max_examples=examples(150))
@given(yamlish, yamlish, yamlish)
def test_any_text(scenario: str, population: str, hosts: str) -> None:
    check(scenario, population, hosts, [])


@settings(deadline=None, max_examples=examples(250))
@given(broken("\n".join(LINES)), broken(POPULATION), broken("hosts: [{workers: 2}]"))
def test_texts_that_are_nearly_right(scenario: str, population: str, hosts: str) -> None:
    check(scenario, population, hosts, [])


@settings(deadline=None, max_examples=examples(150))
@given(st.lists(st.tuples(yamlish, yamlish, st.sampled_from(["--set", "--agents"])), max_size=3))
def test_any_override(overrides: Overrides) -> None:
    check("\n".join(LINES[:5]), POPULATION, "{}", overrides)
