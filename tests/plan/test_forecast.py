"""What a run will take, before it has begun."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from agentsim.cli.app import app
from agentsim.config import Hostfile, Loaded, LoadedWorkflow, load_any
from agentsim.games import GAMES
from agentsim.launch.connection import Problem
from agentsim.launch.preflight import Looked
from agentsim.plan.forecast import Forecast, forecast
from agentsim.plan.missing import doubts, missing, weighed
from agentsim.report.forecast import forecast_text

MODEL = {"backend": "openai", "name": "m", "max_tokens": 100, "api_key_env": "SOME_KEY"}
WRITER = {"writer": "model", "model": MODEL | {"max_tokens": 10}, "attempts": 2}


def loaded(folder: Path, **fields: Any) -> Loaded | LoadedWorkflow:
    contents = {"name": "t", "agents": 10, "rounds": 3, "sessions": 2}
    if "workflow" not in fields:
        contents |= {"game": {"type": "guess_average"}, "model": {"backend": "random"}}
    path = folder / "t.yaml"
    path.write_text(yaml.safe_dump(contents | fields))
    return load_any(path, games=GAMES)


def write(folder: Path, name: str, contents: Any) -> str:
    (folder / name).write_text(yaml.safe_dump(contents))
    return name


def people(folder: Path, **fields: Any) -> str:
    attributes = {"gender": {"categories": {"female": 0.5, "male": 0.5}}}
    return write(folder, "people.yaml", {"attributes": attributes} | fields)


def coming(folder: Path, **fields: Any) -> Forecast:
    return forecast(loaded(folder, **fields))


def test_everybody_has_a_seat(tmp_path: Path) -> None:
    hosts = write(tmp_path, "h.yaml", {"hosts": [{"workers": 1}, {"address": "b", "workers": 2}]})
    plan = coming(tmp_path, hosts=hosts)
    assert [(seat.worker, seat.host, seat.first, seat.last) for seat in plan.seats] == [
        (0, "localhost", 0, 2),
        (1, "b", 3, 5),
        (2, "b", 6, 9),
    ]
    assert [(host.workers, host.agents) for host in plan.hosts] == [(1, 3), (2, 7)]
    assert (plan.actions, plan.models, plan.players) == (60, (), "random")


def test_requests_are_bounded_by_attempts_and_replies_by_tokens(tmp_path: Path) -> None:
    plan = coming(tmp_path, model=MODEL, replies={"attempts": 4})
    (model,) = plan.models
    assert (model.requests_least, model.requests_most) == (60, 240)
    assert model.tokens_most == 24_000
    assert plan.disk_bytes is None
    assert plan.to_dict()["models"][0]["tokens_most"] == 24_000


def test_people_that_a_model_writes_are_requests_too(tmp_path: Path) -> None:
    plan = coming(tmp_path, population=people(tmp_path, persona=WRITER))
    (model,) = plan.models
    assert (model.use, model.requests_least, model.requests_most) == ("personas", 20, 40)


def test_a_program_asks_nobody_knows_how_much(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def main(run):\n    pass\n")
    plan = coming(tmp_path, workflow="mine:main", model=MODEL)
    assert (plan.actions, plan.seats) == (None, ())
    assert plan.models[0].requests_most is None
    assert "requests: unknown" in forecast_text(plan)


def test_thinking_takes_its_time(tmp_path: Path) -> None:
    plan = coming(tmp_path, model={"backend": "dummy", "think_s": 2.0, "jitter_s": 0.5})
    assert plan.thinking_s == pytest.approx(7.5)


def test_where_nodes_listen(tmp_path: Path) -> None:
    host = {"address": "gpu01", "advertise": "10.0.0.2", "python": "/opt/py", "gpus": 4}
    ssh: dict[str, Any] = {"launcher": "ssh", "hosts": [host, {"address": "b", "port": 0}]}
    plan = coming(tmp_path, hosts=write(tmp_path, "h.yaml", ssh))
    assert [one.listens for one in plan.hosts] == [
        "port 7000-7099 of 10.0.0.2",
        "any free port of b",
    ]
    assert [(one.python, one.gpus) for one in plan.hosts] == [
        ("/opt/py", 4),
        ("found on the host", None),
    ]
    text = forecast_text(plan)
    assert "Python: /opt/py" in text
    assert "4 GPUs" in text
    plan = coming(tmp_path, hosts=write(tmp_path, "h.yaml", ssh | {"transport": "tunnel"}))
    assert plan.hosts[0].listens == "through ssh"


def test_what_is_missing_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    writer = WRITER | {"model": {"backend": "llama_cpp", "name": "no.gguf"}}
    run = loaded(tmp_path, model=MODEL, population=people(tmp_path, persona=writer))
    problems = missing(run)
    assert len(problems) == 2
    assert "no.gguf" in problems[0] or "llama" in problems[0]
    assert "SOME_KEY" in problems[1]
    monkeypatch.setenv("SOME_KEY", "x")
    assert len(missing(run)) == 1


def test_more_workers_than_processors_and_too_little_room_are_doubts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = write(tmp_path, "h.yaml", {"hosts": [{"workers": 3}]})
    plan = coming(tmp_path, hosts=hosts, rounds=1000)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("agentsim.plan.missing._free_bytes", lambda path: 5)
    monkeypatch.setattr("agentsim.plan.missing._free_memory_bytes", lambda: 1000)
    cpus, disk, memory = doubts(plan, tmp_path / "not" / "there")
    assert "3 workers" in cpus
    assert "5 bytes left" in disk
    assert "1,000 bytes of memory" in memory


@pytest.mark.parametrize("model", [MODEL, {"backend": "random"}])
def test_the_text_fits_a_terminal(tmp_path: Path, model: dict[str, Any]) -> None:
    hosts = write(tmp_path, "h.yaml", {"hosts": [{"workers": 40}]})
    text = forecast_text(coming(tmp_path, model=model, hosts=hosts, agents=100_000_000))
    assert all(len(line) <= 80 for line in text.splitlines()), text
    assert "and 28 workers more" in text


def test_hosts_are_looked_at_only_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []

    async def look(hostfile: Hostfile) -> list[Looked]:
        looked.append(hostfile)
        return [Looked(hostfile.hosts[0], None, (Problem("no Python there"),))]

    monkeypatch.setattr("agentsim.launch.preflight.look", look)
    hosts = write(tmp_path, "h.yaml", {"launcher": "ssh", "hosts": [{"address": "gpu01"}]})
    loaded(tmp_path, hosts=hosts)
    plain = CliRunner().invoke(app, ["plan", str(tmp_path / "t.yaml"), "--json"])
    assert (plain.exit_code, looked) == (0, [])
    assert "--look" in json.loads(plain.stdout)["doubts"][-1]
    close = CliRunner().invoke(app, ["plan", str(tmp_path / "t.yaml"), "--look"])
    assert (close.exit_code, len(looked)) == (1, 1)
    assert "  gpu01: no Python there\n" in close.stdout


def test_weights_that_are_here_are_weighed(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF" + bytes(2044))
    model = {"backend": "llama_cpp", "name": str(tmp_path / "m.gguf")}
    plan = weighed(coming(tmp_path, model=model))
    assert plan.models[0].weights_bytes == 2048
    assert "weights of 2.0 KiB" in forecast_text(plan)
    lacking = weighed(coming(tmp_path, model=model | {"name": "no.gguf"}))
    assert lacking.models[0].weights_bytes is None
