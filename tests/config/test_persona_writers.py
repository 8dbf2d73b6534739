"""The `persona:` part of a population, and population files on their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_samples import SCENARIO, codes, findings, loaded, write

from agentsim.config import load_population
from agentsim.config.models import LlamaCpp
from agentsim.config.population import ModelWriter, TemplateWriter
from agentsim.errors import ConfigError, Finding

ATTRIBUTES = "attributes: {gender: {categories: {female: 0.5, male: 0.5}}}\n"
SHIPPED = Path(__file__).parents[2] / "populations" / "written_adults.yaml"


def population(tmp_path: Path, text: str, *overrides: tuple[str, str, str]) -> ModelWriter:
    path = tmp_path / "p.yaml"
    path.write_text(ATTRIBUTES + text)
    writer = load_population(path, overrides=overrides).population.persona
    assert isinstance(writer, ModelWriter)
    return writer


def wrong(tmp_path: Path, text: str, *overrides: tuple[str, str, str]) -> tuple[Finding, ...]:
    with pytest.raises(ConfigError) as error:
        population(tmp_path, text, *overrides)
    return error.value.findings


def test_the_template_writes_where_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(ATTRIBUTES)
    assert load_population(path).population.persona == TemplateWriter(writer="template")


def test_a_model_writes(tmp_path: Path) -> None:
    writer = population(tmp_path, "persona: {writer: model, model: {backend: llama_cpp}}\n")
    assert isinstance(writer.model, LlamaCpp)
    assert (writer.language, writer.attempts) == ("English", 3)


def test_the_command_line_may_name_the_writer(tmp_path: Path) -> None:
    flags = [
        ("persona.writer", "model", "--set"),
        ("persona.model", "{backend: llama_cpp}", "--set"),
    ]
    assert population(tmp_path, "", *flags).model.name == "smollm2-135m-instruct"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("persona: {writer: model}", "missing-key", "model: {backend: llama_cpp"),
        ("persona: {language: Thai}", "missing-key", "writer: template"),
        ("persona: {writer: modle}", "unknown-value", "template, model"),
        ("persona: {writer: template, language: Thai}", "unknown-key", "writer"),
        ("persona: {writer: model, model: {backend: random}}", "unknown-value", "llama_cpp"),
        ("persona: {writer: model, model: {backend: vllm}}", "not-served", "llama_cpp, openai"),
        ("persona: {writer: model, model: {backend: openai}}", "missing-key", "name"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, code: str, words: str) -> None:
    (finding,) = wrong(tmp_path, f"{text}\n")
    assert (finding.code, finding.line) == (code, 2)
    assert words in finding.expected


@pytest.mark.parametrize(
    ("field", "code"),
    [
        ("attempts: 0", "out-of-range"),
        ("attempts: 21", "out-of-range"),
        ("language: ''", "bad-value"),
    ],
)
def test_bounds(tmp_path: Path, field: str, code: str) -> None:
    text = f"persona: {{writer: model, model: {{backend: llama_cpp}}, {field}}}\n"
    assert codes(wrong(tmp_path, text)) == [code]


def test_a_key_in_the_writers_model_is_masked(tmp_path: Path) -> None:
    text = "persona: {writer: model, model: {backend: openai, name: m, api_key: sk-planted}}\n"
    for finding in wrong(tmp_path, text):
        assert "sk-planted" not in str(finding)


def test_a_scenario_is_no_population(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(ConfigError) as error:
        load_population(path)
    (finding,) = error.value.findings
    assert (finding.code, finding.expected) == ("wrong-type", "a population")


def test_the_shipped_one_is_written_by_the_embedded_model() -> None:
    writer = load_population(SHIPPED).population.persona
    assert isinstance(writer, ModelWriter)
    assert writer.model.name == "smollm2-135m-instruct"


def test_a_made_file_needs_enough_people(tmp_path: Path) -> None:
    from agentsim.population import write_personas

    path = tmp_path / "p.yaml"
    path.write_text(ATTRIBUTES)
    drawn = load_population(path).population
    write_personas(tmp_path / "p.parquet", drawn, agents=4, sessions=2, seed=1)
    scenario = SCENARIO + "population: p.parquet\nsessions: 2\n"
    result = loaded(write(tmp_path, scenario=scenario))
    assert result.made is not None
    assert result.made.people == 8
    assert result.population == drawn
    (finding,) = findings(write(tmp_path, scenario=scenario), [("agents", "6", "--agents")])
    assert (finding.code, finding.line) == ("contradiction", 6)
    assert "8 personas, the scenario needs 12" in finding.message
    assert [place.file for place in finding.related] == [
        "--agents",
        str(tmp_path / "scenario.yaml"),
    ]


def test_a_made_file_that_is_not_there(tmp_path: Path) -> None:
    (finding,) = findings(write(tmp_path, scenario=SCENARIO + "population: p.parquet\n"))
    assert (finding.code, finding.line) == ("unreadable-file", 6)
