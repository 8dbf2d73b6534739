"""Whole runs against a model server that misbehaves: counted statuses and a finished run, or a
clear failure; never a hang, a traceback or a wrong number."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from whole_runs import table

# Requests that the endpoint is tried with before the run begins.
PROBES = 8
AGENTS = 20


@pytest.fixture
def llm(scenario) -> Callable[..., Any]:
    """A scenario that asks a server; quick to give up."""

    def write(url: str, missing_share: float = 1.0, **model: Any) -> Any:
        asks = {"backend": "openai", "name": "fake", "base_url": url, "timeout_s": 1.0, "tries": 2}
        return scenario(
            agents=AGENTS,
            model=asks | model,
            prompt="direct",
            replies={"attempts": 2},
            limits={"missing_share": missing_share},
        )

    return write


def summary(program) -> dict[str, Any]:
    return json.loads((program.folder / "R" / "summary.json").read_text())


@pytest.mark.quick
def test_a_good_server_gives_valid_actions_alone(program, model_server, llm) -> None:
    program.run("run", llm(model_server()), "--out", "R", "--quiet")
    assert summary(program)["actions"]["statuses"] == {"ok": 2 * AGENTS}
    rows = table(program.folder / "R")
    assert len({(session, round, agent) for session, round, agent, _, _ in rows}) == 2 * AGENTS


@pytest.mark.parametrize(
    "structured",
    ["yes", "no", *(pytest.param(s, marks=pytest.mark.slow) for s in ("lie", "refuse"))],
)
def test_structured_output_is_found_by_trying(program, model_server, llm, structured) -> None:
    file = llm(model_server("--structured", structured))
    program.run("run", file, "--out", "R", "--quiet")
    manifest = json.loads((program.folder / "R" / "manifest.json").read_text())
    assert manifest["reply_format"] == ("json" if structured == "yes" else "text")
    assert summary(program)["actions"]["statuses"] == {"ok": 2 * AGENTS}


@pytest.mark.parametrize(
    ("mode", "statuses"),
    [
        ("garbage", {"no_answer"}),
        ("empty", {"empty"}),
        pytest.param("429", {"failed"}, marks=pytest.mark.slow),
        ("500", {"failed"}),
        ("half", {"failed"}),
        ("never", {"failed"}),
        pytest.param("null_content", {"truncated", "empty"}, marks=pytest.mark.slow),
        pytest.param("truncated", {"truncated"}, marks=pytest.mark.slow),
        pytest.param("reset", {"failed"}, marks=pytest.mark.slow),
        pytest.param("html", {"failed"}, marks=pytest.mark.slow),
        pytest.param("wrong_json", {"failed"}, marks=pytest.mark.slow),
        pytest.param("context", {"failed"}, marks=pytest.mark.slow),
    ],
)
def test_bad_answers_are_counted_as_what_they_are(
    program, model_server, llm, mode, statuses
) -> None:
    url = model_server("--mode", mode, "--after", str(PROBES + AGENTS))
    _, err = program.run("run", llm(url), "--out", "R", timeout_s=100)
    assert "Traceback" not in err
    result = summary(program)
    assert result["run"]["state"] == "finished"
    final = result["actions"]["statuses"]
    assert set(final) <= {"ok"} | statuses
    assert sum(final.values()) == 2 * AGENTS
    assert final.get("ok", 0) <= 2 * AGENTS - 4
    values = [value for *_, status, value in table(program.folder / "R") if status != "ok"]
    assert values
    assert set(values) == {None}


def test_a_mixed_server_loses_and_doubles_nothing(program, model_server, llm) -> None:
    url = model_server("--mode", "mixed", "--after", str(PROBES))
    program.run("run", llm(url), "--out", "R", "--quiet", timeout_s=100)
    rows = table(program.folder / "R")
    assert sorted(row[:3] for row in rows) == sorted(
        (1, round, agent) for round in (1, 2) for agent in range(AGENTS)
    )
    assert all((value is not None) == (status == "ok") for *_, status, value in rows)


def test_too_many_missing_actions_end_the_run(program, model_server, llm) -> None:
    url = model_server("--mode", "garbage", "--after", str(PROBES))
    file = llm(url, missing_share=0.1)
    _, err = program.run("run", file, "--out", "R", code=1)
    assert re.search(r"limits.missing_share: in round 1 of session 1, (\d+) of 20 agents", err)
    assert "no_answer); the scenario allows a share of 0.1" in err
    assert "Traceback" not in err
    assert summary(program)["run"]["state"] == "failed"
    assert summary(program)["actions"]["missing"] > 0.1 * AGENTS


@pytest.mark.parametrize(
    "mode",
    [
        "unauthorized",
        "never",
        *(pytest.param(mode, marks=pytest.mark.slow) for mode in ("500", "html", "reset")),
    ],
)
def test_a_server_that_cannot_be_used_is_told_at_once(program, model_server, llm, mode) -> None:
    url = model_server("--mode", mode)
    _, err = program.run("run", llm(url), "--out", "R", code=1, timeout_s=100)
    assert "agentsim: error:" in err
    assert url in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_nobody_listens_there(program, llm) -> None:
    _, err = program.run("run", llm("http://127.0.0.1:9/v1"), "--out", "R", code=1, timeout_s=100)
    assert "http://127.0.0.1:9/v1" in err
    assert "Traceback" not in err


def test_the_key_reaches_the_server_and_nothing_else(program, model_server, llm) -> None:
    url = model_server("--api-key-env", "FAKE_KEY")
    key = "sk-planted-secret-0123456789"
    file = llm(url, api_key_env="FAKE_KEY")
    out, err = program.run("run", file, "--out", "R", env={"FAKE_KEY": key})
    assert summary(program)["actions"]["statuses"] == {"ok": 2 * AGENTS}
    assert key not in out + err
    for path in (program.folder / "R").rglob("*"):
        assert path.is_dir() or key.encode() not in path.read_bytes(), path


@pytest.mark.quick
def test_a_missing_key_is_told_before_anything_starts(program, llm) -> None:
    file = llm("http://127.0.0.1:9/v1", api_key_env="NO_SUCH_KEY")
    _, err = program.run("run", file, "--out", "R", code=2)
    assert "NO_SUCH_KEY" in err
    assert not (program.folder / "R").exists()


@pytest.mark.slow
def test_tokens_end_the_run(program, model_server, llm) -> None:
    url = model_server()
    _, err = program.run("run", llm(url), "--set", "limits.tokens=200", "--out", "R", code=1)
    assert "limits.tokens" in err
    assert summary(program)["run"]["state"] == "failed"


@pytest.mark.slow
def test_wall_time_ends_the_run(program, model_server, llm) -> None:
    url = model_server("--mode", "never", "--after", str(PROBES))
    file = llm(url, timeout_s=60.0)
    _, err = program.run(
        "run", file, "--set", "limits.wall_s=1.5", "--out", "R", code=1, timeout_s=30
    )
    assert "limits.wall_s" in err
