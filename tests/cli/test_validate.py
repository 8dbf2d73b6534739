"""`agentsim validate` and `agentsim schema`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from agentsim.cli.schema import schema
from agentsim.cli.validate import validate
from agentsim.errors import ConfigError

ROOT = Path(__file__).parents[2]
THEORY = ROOT / "scenarios" / "guess_two_thirds_theory.yaml"
app = typer.Typer()
app.command()(validate)
app.command()(schema)


def run(*args: str) -> str:
    result = CliRunner().invoke(app, args, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_what_would_run_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert run("validate", "scenarios/guess_two_thirds_theory.yaml") == (
        "scenarios/guess_two_thirds_theory.yaml is valid: "
        "10,000 agents × 4 rounds × 1 session of guess_average (range [0, 100], "
        "target 2/3 * mean). 40,000 actions, seed 7. "
        "Population by quota: education, age, gender, occupation, income. "
        "Model cognitive_hierarchy (tau 1.5, spread 10). "
        "1 host by the local launcher, 2 workers.\n"
    )
    assert (
        "Model llama_cpp smollm2-135m-instruct at temperature 1, at most 128 tokens a reply, "
        "3 attempts, prompt step_by_step." in run("validate", "scenarios/guess_two_thirds.yaml")
    )


def test_flags_change_what_would_run(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("hosts: [{}, {workers: 9}]\n")
    more = ["--set", "agents=1", "--set", "population=null", "--set", "model={backend: random}"]
    text = run("validate", str(THEORY), "--hosts", str(hosts), "--workers", "3", *more)
    assert "1 agent × 4 rounds" in text
    assert "No population. Model random. 2 hosts by the local launcher, 6 workers." in text


def test_findings_are_raised_for_the_command_line_to_show() -> None:
    with pytest.raises(ConfigError) as error:
        run("validate", str(THEORY), "--set", "agents=0", "--set", "rounds")
    assert [item.code for item in error.value.findings] == ["bad-override"]
    assert error.value.exit_code == 2


@pytest.mark.parametrize("kind", ["", "scenario", "population", "hostfile"])
def test_schema_is_json(kind: str) -> None:
    data = json.loads(run("schema", *[kind] * bool(kind)))
    assert data["type"] == "object"
    assert ("GuessAverageSpec" in data.get("$defs", {})) == (kind in ("", "scenario"))


def test_commands_are_imported_without_what_is_heavy() -> None:
    code = (
        "import sys, agentsim.cli.validate, agentsim.cli.schema, agentsim.cli.findings; "
        "print(sorted({'pydantic', 'yaml', 'numpy', 'agentsim.config'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
