"""Users' programs, whole: run by `agentsim run`, on scripted replies; what they leave, how they end
when something goes wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from script_server import ScriptServer
from whole_runs import ROOT

from agentsim.results import load_run
from agentsim.testing import Answer, Ask, Mode

Reply = str | Answer | None


@pytest.fixture
def serve() -> Iterator[Callable[..., ScriptServer]]:
    """Starts a model server that says what a function of the request gives."""
    servers: list[ScriptServer] = []

    def start(script: Callable[[Ask], Reply], **options: Any) -> ScriptServer:
        servers.append(ScriptServer(script, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def asks(server: ScriptServer, **more: Any) -> list[str]:
    """Flags that have a shipped scenario ask a server."""
    model = {"backend": "openai", "name": "fake", "base_url": server.url, "tries": 1, **more}
    return ["--set", f"model={json.dumps(model)}"]


@pytest.fixture
def own(program) -> Callable[..., Path]:
    """Writes a scenario with a program beside it."""

    def write(source: str, server: ScriptServer | None = None, **fields: Any) -> Path:
        (program.folder / "mine.py").write_text(source)
        contents = {"name": "mine", "workflow": "mine:main", "agents": 4, **fields}
        if server is not None:
            contents["model"] = {
                "backend": "openai",
                "name": "fake",
                "base_url": server.url,
                "tries": 1,
            }
        path = program.folder / "mine.yaml"
        path.write_text(yaml.safe_dump(contents))
        return path

    return write


def rows(run: Path, table: str) -> list[dict[str, Any]]:
    return load_run(run).table(table).to_pylist()


# --- the shipped three


def debater_or_judge(ask: Ask) -> Reply:
    if "You judge a debate" not in ask.text:
        side = "for" if "You are for the motion" in ask.text else "against"
        return f"I am {side} it, turn {ask.text.count(f'I am {side} it')}."
    if "speaker who is for" in ask.text:
        return "7"
    return "I cannot say." if ask.earlier == 0 and "0 (not" in ask.text else "4"


def test_a_debate_is_heard_and_judged(program, serve) -> None:
    server = serve(debater_or_judge)
    _, err = program.run("run", ROOT / "scenarios/debate.yaml", *asks(server), "--out", "R")
    said = rows(program.folder / "R", "statements")
    assert [(row["number"], row["side"], row["text"]) for row in said] == [
        (1, "for", "I am for it, turn 0."),
        (2, "against", "I am against it, turn 0."),
        (3, "for", "I am for it, turn 1."),
        (4, "against", "I am against it, turn 1."),
    ]
    assert rows(program.folder / "R", "verdicts") == [
        {"session": 1, "points_for": 7, "points_against": None}
    ]
    assert "against: I am against it, turn 1." in err
    assert "Every adult should receive a basic income" in server.asked[-1].text


def test_silence_in_a_chat_room_is_counted_and_ends_it(program, serve) -> None:
    def script(ask: Ask) -> Reply:
        me = re.search(r"in a chat room, as (\w+) (\d)", ask.text)
        if me is None:
            return "ok"
        if "I am 2" in ask.text:  # everybody has heard enough
            return "silent."
        return f"I am {me[2]}" if me[2] in "02" else "SILENT"

    server = serve(script)
    program.run("run", ROOT / "scenarios/chat_room.yaml", *asks(server), "--out", "R", "--quiet")
    lines = rows(program.folder / "R", "lines")
    assert [(row["turn"], row["agent"], row["text"]) for row in lines[1:]] == [
        (1, 0, "I am 0"),
        (1, 2, "I am 2"),
    ]
    assert [(r["spoke"], r["silent"]) for r in rows(program.folder / "R", "turns")] == [
        (2, 3),
        (0, 5),
    ]


def public_goods(ask: Ask) -> Reply:
    if "take points" in ask.text:
        other = re.search(r"another player gave (\d+)", ask.text)
        assert other is not None
        return '{"answer": 2}' if other[1] == "0" else '{"answer": 0}'
    return '{"answer": 25}' if "farmer" in ask.text else '{"answer": 10}'


def test_public_goods_pay_as_they_should(program, serve) -> None:
    """The one who names no number that is allowed gives nothing, and is punished by all others."""
    server = serve(public_goods)
    file = ROOT / "scenarios/public_goods.yaml"
    people = program.folder / "people.yaml"
    people.write_text(
        yaml.safe_dump(
            {"attributes": {"occupation": {"categories": {"farmer": 0.25, "nurse": 0.75}}}}
        )
    )
    flags = [*asks(server), "--agents", "4", "--set", f"population={people}"]
    program.run("run", file, *flags, "--out", "R", "--quiet")
    of_round = [row for row in rows(program.folder / "R", "decisions") if row["round"] == 2]
    assert len(of_round) == 4
    (free,) = [row for row in of_round if row["contribution"] is None]
    givers = [row for row in of_round if row["contribution"] == 10]
    assert len(givers) == 3
    # The project has 30 points, times 1.6, over four: 12 for each.
    assert (free["dealt"], free["got"], free["payoff"]) == (0, 6, 20 + 12 - 3 * 6)
    assert {(row["dealt"], row["got"], row["payoff"]) for row in givers} == {(2, 0, 10 + 12 - 2)}
    requests = load_run(program.folder / "R").requests
    assert (requests["agent"] == free["agent"]).sum() == 2 * (3 + 3)  # asked three times to give


@pytest.mark.slow
def test_prompts_and_seeds_do_not_depend_on_workers(program, serve) -> None:
    asked = []
    for workers in ("1", "3"):
        flags = [*asks(serve(public_goods)), "--workers", workers, "--out", workers]
        program.run("run", ROOT / "scenarios/public_goods.yaml", *flags, "--quiet")
        requests = load_run(program.folder / workers).requests.sort_values(["agent", "step"])
        prompts = [[dict(m) for m in messages] for messages in requests["messages"]]
        key = requests[["agent", "step", "seed"]].to_numpy().tolist()
        asked.append([*zip(key, prompts, strict=True)])
    assert asked[0] == asked[1]
    assert len(asked[0]) == 2 * 8 * 4
    assert len({seed for (_, _, seed), _ in asked[0]}) == len(asked[0])


# --- what a program leaves

ASKS = """
from agentsim import Agent, Model, Persona, Workflow

class Asker(Agent):
    def __init__(self, persona: Persona, model: Model) -> None:
        self.persona, self.model = persona, model

    async def act(self, question: str) -> str:
        return (await self.model.chat(question)).text

def main(run: Workflow) -> None:
    askers = run.cluster.group(Asker, [(p, run.model.of(p)) for p in run.personas])
    for persona, text in zip(run.personas, askers("Who?").result()):
        run.record("heard", agent=persona.agent, text=text)
    run.record("alone", text=run.model.chat("Alone?").result().text)
"""


def test_every_call_is_recorded_and_counted(program, serve, own) -> None:
    server = serve(lambda ask: f"reply to {ask.text}")
    out, _ = program.run("run", own(ASKS, server, sessions=2), "--out", "R")
    run = load_run(program.folder / "R")
    assert run.state == "finished"
    requests = run.requests
    assert len(requests) == 10
    assert requests["text"].eq("reply to Who?").sum() == 8
    assert set(requests["worker"]) == {-1, 0, 1}
    assert requests.groupby(["session", "agent"]).size().eq(1).all()
    assert requests["seed"].nunique() == 10
    assert run.summary["calls"] == {"total": 10, "statuses": {"ok": 10}}
    assert run.summary["tables"] == {"alone": 2, "heard": 8}
    tokens = requests[["prompt_tokens", "completion_tokens"]].to_numpy().sum()
    assert run.summary["tokens"]["total"] == tokens > 0
    assert "heard  8 rows" in out
    assert "mine.py" in "".join(run.manifest["files"])
    shown, _ = program.run("show", "R", "--agent", "3", "--session", "2")
    assert "call 1\n  user\n    Who?\n  reply 1, final\n    reply to Who?" in shown
    listed, _ = program.run("runs", "R")
    assert "mine" in listed
    _, err = program.run("report", "R", code=2)
    assert "a report is about games" in err


@pytest.mark.slow
def test_tables_can_be_made_again_from_the_journal(program, serve, own) -> None:
    from agentsim.results import RunDirectory, rebuild

    server = serve(lambda ask: "yes")
    program.run("run", own(ASKS, server), "--out", "R", "--quiet")
    path = program.folder / "R"
    before = [load_run(path).table(name) for name in ("heard", "alone", "requests")]
    for file in [*path.glob("tables/*"), *path.glob("requests/*")]:
        file.unlink()
    rebuild(RunDirectory(path))
    assert [load_run(path).table(name) for name in ("heard", "alone", "requests")] == before


@pytest.mark.quick
def test_a_program_needs_no_model(program, own) -> None:
    source = (
        "def main(run):\n    for p in run.personas: run.record('t', agent=p.agent, n=run.seed)\n"
    )
    out, _ = program.run("run", own(source, seed=5), "--out", "R")
    assert [row["n"] for row in rows(program.folder / "R", "t")] == [5] * 4
    assert "calls of the model" not in out


@pytest.mark.slow
def test_json_prints_the_summary_alone(program, own) -> None:
    out, err = program.run("run", own("def main(run): run.note('x')\n"), "--out", "R", "--json")
    assert json.loads(out)["workflow"] == "mine:main"
    assert err == ""


@pytest.mark.slow
def test_personas_may_be_written_by_a_model_and_taken_from_a_file(program, serve, own) -> None:
    def script(ask: Ask) -> Reply:
        return "ok" if "Who?" in ask.text or "Alone?" in ask.text else "You are a very old nurse."

    server = serve(script, structured=False)
    model = {"backend": "openai", "name": "fake", "base_url": server.url, "tries": 1}
    people = program.folder / "people.yaml"
    attributes = {"occupation": {"categories": {"nurse": 1.0}}}
    persona = {"writer": "model", "model": model}
    people.write_text(yaml.safe_dump({"attributes": attributes, "persona": persona}))
    source = ASKS + "\n    run.record('people', text=run.personas[0].background)\n"
    program.run("run", own(source, server, population="people.yaml"), "--out", "R", "--quiet")
    run = load_run(program.folder / "R")
    assert run.summary["calls"]["total"] == 5
    assert (run.requests["round"] == 0).sum() >= 4
    made = own(source, server, population="R/personas.parquet")
    program.run("run", made, "--out", "S", "--quiet")
    texts = [rows(program.folder / name, "people")[0]["text"] for name in ("R", "S")]
    assert texts[0] == texts[1] != ""


# --- what goes wrong


def failed(program, *args: Any, code: int = 1) -> str:
    _, err = program.run("run", *args, "--out", "R", code=code)
    assert "this is a bug in agentsim" not in err
    return err


def test_the_users_exception_is_shown_with_its_traceback_alone(program, own) -> None:
    source = (
        "def main(run):\n    run.record('t', a=1)\n    inner()\n\n"
        "def inner():\n    raise ValueError('the dog ate it')\n"
    )
    err = failed(program, own(source))
    assert "workflow mine:main failed: ValueError: the dog ate it" in err
    assert f'File "{program.folder}/mine.py", line 3, in main' in err
    assert "in inner" in err
    assert "agentsim/workflow" not in err
    run = load_run(program.folder / "R")
    assert run.state == "failed"
    assert run.summary["run"]["reason"].endswith("ValueError: the dog ate it")
    assert rows(program.folder / "R", "t") == [{"session": 1, "a": 1}]


def test_an_exception_in_an_agent_comes_with_both_tracebacks(program, own) -> None:
    source = (
        "from agentsim import Agent\nclass A(Agent):\n    def act(self):\n        return 1 / 0\n"
        "def main(run):\n    A.on(run.cluster)().result()\n"
    )
    err = failed(program, own(source))
    assert "ZeroDivisionError: division by zero (on worker 0 on localhost)" in err
    assert "line 6, in main" in err
    assert "return 1 / 0" in err


@pytest.mark.slow
@pytest.mark.parametrize(("code", "exit"), [("0", 0), ("3", 1)])
def test_sys_exit_ends_the_function(program, own, code, exit) -> None:
    program.run("run", own(f"import sys\ndef main(run): sys.exit({code})\n"), code=exit)


@pytest.mark.quick
def test_what_cannot_be_imported_starts_nothing(program, own) -> None:
    err = failed(program, own("import no_such_thing\ndef main(run): pass\n"), code=2)
    assert "module mine cannot be imported: ModuleNotFoundError" in err
    assert "line 1" in err
    assert not (program.folder / "R").exists()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("run.record('Bad', a=1)", "'Bad' cannot be a table's name"),
        ("run.record('requests', a=1)", "cannot be a table's name"),
        ("run.record('t', a=[1])", "column 'a' cannot hold a list"),
        ("run.record('t', a=1); run.record('t', a='x')", "column 'a' holds int, and 'x' is str"),
        ("run.model", "the scenario has no `model`"),
    ],
)
def test_wrong_use_is_told(program, own, call, words) -> None:
    err = failed(program, own(f"def main(run):\n    {call}\n"))
    assert words in err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["workflow=mine:other"], "module `mine` has no function `other`"),
        (["workflow=nowhere:main"], "there is no module `nowhere`"),
        (["workflow=main"], "a workflow is written module:function"),
        (["game={type: guess_average}"], "a scenario has a game or a workflow"),
        (["modules=[absent]"], "there is no module `absent`"),
    ],
)
def test_findings_before_anything_runs(program, own, flags, words) -> None:
    file = own("print('run!')\ndef main(run): pass\n")
    for command in ("run", "validate"):
        more = [item for flag in flags for item in ("--set", flag)]
        out, err = program.run(command, file, *more, code=2)
        assert words in err
        assert "run!" not in out


def test_syntax_errors_are_findings_with_their_line(program, own) -> None:
    _, err = program.run("validate", own("def main(run):\n    if run\n"), code=2)
    assert "`mine.py` is not Python: line 2" in err
    assert "--> mine.py:2:11" in err


def test_a_model_that_fails_is_an_error_in_the_agent(program, serve, own) -> None:
    server = serve(lambda ask: Answer(mode=Mode.BROKEN) if ask.text == "Who?" else "ok")
    err = failed(program, own(ASKS, server))
    assert "agentsim.errors.ModelError: the model gave no reply: HTTP 500" in err
    run = load_run(program.folder / "R")
    assert run.summary["calls"]["statuses"]["failed"] >= 1
    assert set(run.requests["error"]) <= {"", *(e for e in run.requests["error"] if "500" in e)}


CATCHES = """
from agentsim import Agent
from agentsim.errors import ModelError
class A(Agent):
    def __init__(self, model): self.model = model
    async def act(self):
        try:
            return (await self.model.chat("Who?")).text
        except ModelError as error:
            return f"nobody: {error}"
def main(run):
    run.record("t", text=A.on(run.cluster, run.model)())
"""


@pytest.mark.slow
def test_an_agent_can_go_on_without_a_reply(program, serve, own) -> None:
    server = serve(lambda ask: Answer(mode=Mode.BROKEN) if ask.text == "Who?" else "ok")
    program.run("run", own(CATCHES, server), "--out", "R", "--quiet")
    assert "nobody: the model gave no reply" in rows(program.folder / "R", "t")[0]["text"]


@pytest.mark.slow
def test_tokens_end_the_run(program, serve, own) -> None:
    server = serve(lambda ask: "many words " * 20)
    err = failed(program, own(ASKS, server, limits={"tokens": 50}))
    assert re.search(r"limits.tokens: \d+ tokens were used, 50 are allowed", err)
    assert load_run(program.folder / "R").state == "failed"


HANGS = """
import time
from agentsim import Agent
class Slow(Agent):
    async def act(self):
        import asyncio
        await asyncio.sleep(600)
def main(run):
    try:
        {how}
    except Exception:
        pass
    finally:
        run.record("t", ended=True)
"""
WAITS = {
    "a result": "Slow.on(run.cluster)().result()",
    "a group": "run.cluster.group(Slow, count=3)().result()",
    "a reply": "run.model.chat('Who?').result()",
    "nothing": "[None for _ in iter(int, 1)]",
}


@pytest.mark.parametrize("how", WAITS)
def test_ctrl_c_reaches_a_function_that_waits(program, serve, own, how) -> None:
    arrived = threading.Event()

    def script(ask: Ask) -> Reply:
        if ask.text != "Who?":
            return "ok"
        arrived.set()
        return Answer(mode=Mode.NEVER)

    begin = "run.note('begun'); "
    process = program.begin(
        "run", own(HANGS.format(how=begin + WAITS[how]), serve(script)), "--out", "R"
    )
    assert process.stderr is not None
    assert any("begun" in line for line in iter(process.stderr.readline, ""))
    if how == "a reply":
        assert arrived.wait(20)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "interrupted; what was completed is in R" in err
    assert "Traceback" not in err
    program.assert_nothing_left()
    assert load_run(program.folder / "R").state == "interrupted"
    assert rows(program.folder / "R", "t") == [{"session": 1, "ended": True}]


def test_wall_time_ends_a_function_that_waits(program, own) -> None:
    source = HANGS.format(how=WAITS["a result"])
    err = failed(program, own(source, limits={"wall_s": 1.0}))
    assert "limits.wall_s: the run took longer than 1 s" in err


@pytest.mark.parametrize("victim", ["agentsim.node", "agentsim.worker"])
def test_a_killed_process_is_told_of_and_nothing_is_left(program, own, victim) -> None:
    source = HANGS.replace("except Exception", "except ZeroDivisionError")
    file = own(source.format(how="run.note('begun'); " + WAITS["a group"]))
    process = program.begin("run", file, "--out", "R")
    assert process.stderr is not None
    assert any("begun" in line for line in iter(process.stderr.readline, ""))
    os.kill(program.processes(victim)[0], signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1, err
    assert "was ended by signal 9" in err
    program.assert_nothing_left()
    assert "signal 9" in load_run(program.folder / "R").summary["run"]["reason"]


@pytest.mark.slow
def test_a_function_that_waits_for_a_model_ends_when_the_only_node_is_killed(
    program, serve, own
) -> None:
    server = serve(lambda ask: Answer(mode=Mode.HOLD) if "wait" in ask.text else None)
    source = """
    def main(run):
        run.note("begun")
        run.model.chat("wait for it").result()
    """
    file = own(textwrap.dedent(source), server)
    process = program.begin("run", file, "--out", "R")
    program.wait_for(lambda: any("wait" in ask.text for ask in server.asked), 90)
    os.kill(program.processes("agentsim.node")[0], signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1, err
    assert "the node of localhost was ended by signal 9" in err


# --- on the embedded model


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "flags", "tables"),
    [
        ("debate", ["--set", "parameters.turns=1"], {"statements": 2, "verdicts": 1}),
        ("chat_room", ["--agents", "2", "--set", "parameters.turns=1"], {"turns": 1}),
        ("public_goods", ["--agents", "4", "--rounds", "1"], {"decisions": 4}),
    ],
)
def test_the_shipped_programs_run_on_the_embedded_model(program, name, flags, tables) -> None:
    file = ROOT / "scenarios" / f"{name}.yaml"
    program.run("run", file, *flags, "--out", "R", "--quiet", timeout_s=500)
    summary = load_run(program.folder / "R").summary
    assert summary["tables"].items() >= tables.items()
    assert summary["calls"]["total"] >= 2
    assert "failed" not in summary["calls"]["statuses"]
