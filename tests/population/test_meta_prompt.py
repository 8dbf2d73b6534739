"""The meta-prompt: the facts as JSON, the language, and nothing of any game."""

from __future__ import annotations

import ast
import inspect
import json
import re
import typing
from pathlib import Path
from typing import Any

import pytest

from agentsim.config.population import Population
from agentsim.population import facts_of, meta_prompt, sample, writer

GAME_WORDS = {
    *("game", "games", "play", "player", "players", "guess", "guessing", "win", "wins", "winner"),
    *("prize", "average", "mean", "median", "target", "round", "rounds", "experiment", "strategy"),
    "rational",
}
PACKAGE = Path(meta_prompt.__file__).parent


def people(population: Population, n: int = 5) -> list[Any]:
    return list(facts_of(sample(population, n, seed=3, session=1), population))


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


@pytest.mark.parametrize("language", ["English", "German"])
@pytest.mark.parametrize("format", ["json", "text"])
def test_nothing_of_a_game_is_said(adults: Population, language: str, format: Any) -> None:
    said = [meta_prompt.system(language, format).content]
    for facts in people(adults):
        said += [
            meta_prompt.question(facts).content,
            meta_prompt.question(facts, meta_prompt.reminder(facts[:1], facts[1:2])).content,
            meta_prompt.question(facts, meta_prompt.UNREADABLE).content,
            meta_prompt.question(facts, meta_prompt.TOO_LONG).content,
        ]
    for text in said:
        assert not words(text) & GAME_WORDS


def test_no_game_is_within_reach() -> None:
    """Neither module imports one, and no argument of theirs has a type that could hold one."""
    for module in (meta_prompt, writer):
        source = Path(inspect.getfile(module)).read_text()
        imported = {
            node.module or ""
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom)
        }
        assert not [name for name in imported if "scenario" in name or "games" in name]
    for function in (meta_prompt.system, meta_prompt.question, meta_prompt.reminder):
        hints = typing.get_type_hints(function)
        assert {
            "language",
            "format",
            "facts",
            "reminder",
            "absent",
            "contradicted",
            "english",
        } >= set(hints) - {"return"}
    assert set(inspect.signature(writer.Meta).parameters) == {"writer", "format", "seed"}


def test_the_facts_are_json_in_the_files_order(adults: Population) -> None:
    for facts in people(adults):
        text = meta_prompt.question(facts).content
        told, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
        assert list(told) == list(adults.attributes)
        assert told == {fact.name: fact.value for fact in facts}


def test_real_numbers_are_rounded_as_the_template_does(adults: Population) -> None:
    (facts,) = people(adults, 1)
    told = {fact.name: fact.value for fact in facts}
    assert isinstance(told["income"], int)  # a range of 200,000
    assert round(float(told["risk_tolerance"]), 2) == told["risk_tolerance"]


def test_the_system_message_is_the_same_for_everybody_and_comes_first(adults: Population) -> None:
    meta = writer.Meta(persona_writer(), "json", 7)
    requests = [
        writer.PersonaWriter(meta, 1, agent, facts).prepare()
        for agent, facts in enumerate(people(adults))
    ]
    assert {request.messages[0] for request in requests} == {meta.system}
    assert len({request.messages[1].content for request in requests}) == 5
    assert [request.messages[0].role for request in requests] == ["system"] * 5


@pytest.mark.parametrize("language", ["Norwegian", "Brazilian Portuguese", "日本語"])
def test_the_language_is_named(language: str) -> None:
    assert language in meta_prompt.system(language, "text").content
    assert not meta_prompt.is_english(language)


@pytest.mark.parametrize("language", ["English", "english", "British English", "en"])
def test_english_by_any_name(language: str) -> None:
    assert meta_prompt.is_english(language)


def test_the_schema_has_types_and_no_values() -> None:
    schema = meta_prompt.schema()
    assert schema["required"] == list(meta_prompt.FIELDS)
    assert all(set(field) == {"type"} for field in schema["properties"].values())


def test_a_reminder_names_the_facts(adults: Population) -> None:
    (facts,) = people(adults, 1)
    text = meta_prompt.reminder(facts[:2], facts[2:3])
    for fact in facts[:3]:
        assert f"{fact.name} ({fact.value})" in text
    assert text.index("does not state") < text.index("contradicts")


def persona_writer() -> Any:
    from agentsim.config.population import ModelWriter

    return ModelWriter.model_validate_json(
        '{"writer": "model", "model": {"backend": "llama_cpp"}}', strict=True
    )
