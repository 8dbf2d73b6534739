"""`agentsim personas` and runs whose personas a model writes: whole programs."""

import asyncio
import json
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from whole_runs import ROOT

from agentsim.results import Kind, frames, load_run
from agentsim.rpc.codec import decode
from agentsim.rpc.messages import Attempt
from agentsim.testing import Answer, Ask, FakeModelServer, Mode

ATTRIBUTES = {
    "education": {"categories": {"primary": 0.5, "master": 0.5}},
    "age": {"integer": {"uniform": {"low": 18, "high": 90}}},
    "gender": {"categories": {"female": 0.5, "male": 0.5}},
}
FACTS = "The facts: "


def facts_in(ask: Ask) -> dict[str, Any] | None:
    """What a request tells about a person; None for any other request."""
    if FACTS not in ask.text:
        return None
    facts: dict[str, Any] = json.JSONDecoder().raw_decode(
        ask.text, ask.text.index(FACTS) + len(FACTS)
    )[0]
    return facts


def person(facts: dict[str, Any]) -> str:
    rest = " ".join(f"Your {name} is {value}." for name, value in facts.items())
    parts = {"name": "Ada Berg", "age": facts["age"], "gender": facts["gender"], "job": "clerk"}
    return json.dumps(parts | {"description": f"You are a calm person. {rest}"})


class Server:
    """The fake model server, in a thread of its own; a gate holds replies back.

    Attributes:
        fake: what it was asked.
        hold_after: requests for personas that are answered before the gate closes.
        bad: ages whose first text is of no use.
        never: ages whose texts are never of use.
    """

    def __init__(self) -> None:
        self.hold_after: int | None = None
        self.bad: set[int] = set()
        self.never: set[int] = set()
        self.fake = FakeModelServer(self._say)
        self._answered = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "Server":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.fake.start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self.fake.stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def asked(self) -> list[Ask]:
        """Requests for personas."""
        return [ask for ask in self.fake.asked if FACTS in ask.text]

    def _say(self, ask: Ask) -> Answer:
        facts = facts_in(ask)
        if facts is None:
            return Answer()
        self._answered += 1
        if self.hold_after is not None and self._answered > self.hold_after:
            return Answer(mode=Mode.HOLD, text=person(facts))
        again = "earlier reply" in ask.text
        if facts["age"] in self.never or (facts["age"] in self.bad and not again):
            return Answer(text="I would rather not.")
        return Answer(text=person(facts))


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture
def population(program, server):
    """Writes a population file whose personas the fake server writes."""

    def write(**persona: Any) -> Path:
        model = {"backend": "openai", "name": "fake", "base_url": server.fake.base_url}
        contents = {
            "attributes": ATTRIBUTES,
            "persona": {
                "writer": "model",
                "model": model | {"concurrency": 8, "tries": 2, "timeout_s": 30.0},
            }
            | persona,
        }
        path: Path = program.folder / "population.yaml"
        path.write_text(yaml.safe_dump(contents, sort_keys=False))
        return path

    return write


def rows(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


def recorded(journal: Path) -> list[Attempt]:
    return [
        attempt
        for frame in frames(journal)
        if frame.kind is Kind.ATTEMPTS
        for attempt in decode(frame.body, list[Attempt])
    ]


def test_people_are_made_and_the_end_says_how(program, server, population) -> None:
    server.bad, server.never = set(range(18, 40)), set(range(40, 50))
    out, err = program.run("personas", population(), "-n", 40, "-o", "people.parquet")
    made = rows(program.folder / "people.parquet")
    by = Counter(
        (row["writer"], row["attempts"], 18 <= row["age"] < 40, 40 <= row["age"] < 50)
        for row in made
    )
    again, template = by["model", 2, True, False], by["template", 3, False, True]
    assert again
    assert template
    assert sum(by.values()) == 40 == again + template + by["model", 1, False, False]
    assert f"40 personas: {40 - template} by the model ({again} asked again)" in out
    assert f"{template} from the template" in out
    assert f"{again + 3 * template:7}  no name, age, gender, job, description" in out
    assert "personas: 40 of 40" in err
    assert [row["agent"] for row in made] == list(range(40))
    assert len(server.asked) == 40 + again + 2 * template


@pytest.mark.parametrize("killed", [True, False], ids=["kill -9", "ctrl-c"])
def test_nobody_is_asked_twice_when_it_is_resumed(program, server, population, killed) -> None:
    server.hold_after = 25
    server.bad = set(range(18, 30))
    command = ("personas", population(), "-n", 60, "-o", "people.parquet")
    process = program.begin(*command)
    journal = program.folder / "people.parquet.journal"
    program.wait_for(lambda: journal.exists() and len(recorded(journal)) >= 25)
    process.send_signal(signal.SIGKILL if killed else signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == (-9 if killed else 130), err
    if not killed:
        assert "the same command goes on" in err
        assert "Traceback" not in err
    program.assert_nothing_left()
    assert not (program.folder / "people.parquet").exists()
    before = recorded(journal)
    done = {(a.agent, a.attempt): a.text for a in before}
    assert len(done) == len(before) == 25

    server.hold_after = None
    earlier = len(server.asked)
    out, _ = program.run(*command)
    assert "60 personas: 60 by the model" in out
    after = recorded(journal)
    assert after[:25] == before
    assert len({(a.agent, a.attempt) for a in after}) == len(after)
    # Whom the journal has, the server was not asked about again.
    seeds = {a.seed for a in before}
    assert not [ask for ask in server.asked[earlier:] if ask.seed in seeds]
    assert len(server.asked) - earlier == len(after) - 25
    texts = {a.agent: a.text for a in after if a.final}
    for row in rows(program.folder / "people.parquet"):
        assert row["background"].split("\n", 1)[1] == json.loads(texts[row["agent"]])["description"]


REFUSED = {
    "seed": ["--seed", "2"],
    "agents": ["-n", "11"],
    "sessions": ["--sessions", "2"],
    "persona.model.temperature": ["--set", "persona.model.temperature=0.5"],
    "persona.model.name": ["--model", "openai:other"],
    "population": ["--set", "attributes.gender.categories={female: 1.0}"],
    "persona.language": ["--set", "persona.language=Danish"],
}


@pytest.mark.parametrize("what", REFUSED)
def test_another_order_is_refused(program, server, population, what) -> None:
    server.hold_after = 5
    file = population()
    process = program.begin("personas", file, "-n", 10, "-o", "people.parquet")
    program.wait_for(lambda: len(server.asked) >= 10)
    process.kill()
    process.communicate()
    program.assert_nothing_left()
    _, err = program.run("personas", file, "-n", 10, "-o", "people.parquet", *REFUSED[what], code=2)
    assert f"was begun with {what} " in err
    assert "to begin anew, delete it" in err


def test_what_says_only_where_the_server_is_may_change(program, server, population) -> None:
    server.hold_after = 5
    command = ("personas", population(), "-n", 10, "-o", "people.parquet")
    process = program.begin(*command)
    program.wait_for(lambda: len(server.asked) >= 10)
    process.kill()
    process.communicate()
    server.hold_after = None
    with Server() as other:
        url = f"persona.model.base_url={other.fake.base_url}"
        program.run(*command, "--set", url)
        assert 0 < len(other.asked) <= 10


def test_a_file_is_never_overwritten(program, population) -> None:
    program.run("personas", population(), "-n", 3, "-o", "people.parquet", "--quiet")
    before = (program.folder / "people.parquet").read_bytes()
    _, err = program.run("personas", population(), "-n", 3, "-o", "people.parquet", code=2)
    assert "exists already" in err
    assert (program.folder / "people.parquet").read_bytes() == before


def test_a_template_needs_no_model_and_no_journal(program) -> None:
    out, _ = program.run(
        "personas", ROOT / "populations" / "adults.yaml", "-n", 7, "-o", "people.parquet"
    )
    assert "7 personas from the template" in out
    assert [path.name for path in program.folder.iterdir()] == ["people.parquet"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--model", "llama"], "--model takes BACKEND:NAME"),
        (["--model", "vllm:x"], "`persona.model.backend: vllm` is not served"),
        (["--set", "persona.attempts=0"], "persona.attempts must be at least 1"),
    ],
)
def test_what_cannot_be_made_is_said_before_anything_starts(
    program, population, args, words
) -> None:
    _, err = program.run("personas", population(), "-n", 1, "-o", "p.parquet", *args, code=2)
    assert words in err
    assert not (program.folder / "p.parquet.journal").exists()


def test_a_scenario_is_no_population(program, scenario) -> None:
    _, err = program.run("personas", scenario(), "-n", 1, "-o", "p.parquet", code=2)
    assert "is a scenario, not a population" in err


def test_it_ends_when_the_server_is_gone(program, server, population) -> None:
    server.fake.arm(lambda ask: Mode.BROKEN if FACTS in ask.text else None)
    _, err = program.run("personas", population(attempts=1), "-n", 4, "-o", "p.parquet", code=1)
    assert "gives no replies (HTTP 500" in err
    assert not (program.folder / "p.parquet").exists()


def test_faults_of_a_server_make_no_difference(program, server, population) -> None:
    def faults(ask: Ask) -> Mode | None:
        if FACTS in ask.text and not ask.earlier:
            return (Mode.RATE_LIMITED, Mode.BROKEN, Mode.RESET, Mode.HALF, None)[ask.number % 5]
        return None

    server.fake.arm(faults)
    file = population(model={"backend": "openai", "name": "fake", "base_url": server.fake.base_url})
    out, _ = program.run("personas", file, "-n", 20, "-o", "p.parquet")
    assert "20 personas: 20 by the model" in out
    assert server.fake.repeated == []


@pytest.fixture
def game(program, server, scenario):
    """A scenario in which language models play; both models are at the fake server."""

    def write(**fields: Any) -> Path:
        model = {"backend": "openai", "name": "fake", "base_url": server.fake.base_url}
        fields = {"agents": 6, "sessions": 2, "prompt": "character", "model": model} | fields
        path: Path = scenario(**fields)
        return path

    return write


def test_a_run_has_its_personas_written_before_the_game(program, server, population, game) -> None:
    server.bad = set(range(18, 50))
    population()
    out, _ = program.run("run", game(population="population.yaml"), "--out", "R")
    run = load_run(program.folder / "R")
    stage = run.summary["personas"]
    assert stage["by_model"] == 12
    assert stage["from_template"] == 0
    assert stage["requests"] == len(server.asked) == 12 + stage["asked_again"]
    assert f"personas: 12 by the model ({stage['asked_again']} asked again)" in out
    assert run.manifest["personas"]["by_model"] == 12
    first = run.requests[run.requests["round"] == 0]
    assert len(first) == stage["requests"]
    # What the players are shown is what was written; the writer saw nothing of the game.
    players = [ask.text for ask in server.fake.asked if "The person:" in ask.text]
    assert len(players) == 6 * 2 * 2
    for background in run.personas["background"]:
        assert sum(background in text for text in players) >= 2
    assert not [ask for ask in server.asked if "guess" in ask.text.lower()]
    # Attempts of the stage are no attempts of a round.
    assert run.summary["attempts"]["total"] == 24
    assert not [row for row in run.summary["reasons"] if "description" in row["reason"]]


def test_a_run_takes_people_who_were_made_before(program, server, population, game) -> None:
    program.run("personas", population(), "-n", 13, "-o", "people.parquet", "--quiet")
    asked = len(server.asked)
    program.run("run", game(population="people.parquet"), "--out", "R", "--quiet")
    assert len(server.asked) == asked
    run = load_run(program.folder / "R")
    made = rows(program.folder / "people.parquet")
    assert run.personas["background"].tolist() == [row["background"] for row in made[:12]]
    assert run.personas["session"].tolist() == [1] * 6 + [2] * 6
    again = game(name="again", population="R/personas.parquet", sessions=1)
    program.run("run", again, "--out", "R2", "--quiet")
    there = load_run(program.folder / "R2").personas["background"].tolist()
    assert there == [row["background"] for row in made[:6]]


@pytest.mark.parametrize(
    ("agents", "name", "words"),
    [
        (7, "people.parquet", "the file holds 13 personas, the scenario needs 14"),
        (1, "nobody.parquet", "does not exist"),
        (1, "other.parquet", "is not a file of personas"),
        (1, "text.parquet", "is not a file of personas"),
        (1, "folder.parquet", "is a directory"),
    ],
)
def test_a_file_that_will_not_do_is_a_finding(
    program, population, game, agents, name, words
) -> None:
    import pyarrow as pa

    program.run("personas", population(), "-n", 13, "-o", "people.parquet", "--quiet")
    pq.write_table(pa.table({"a": [1]}), program.folder / "other.parquet")
    (program.folder / "text.parquet").write_text("hello")
    (program.folder / "folder.parquet").mkdir()
    _, err = program.run("run", game(agents=agents, population=name), "--out", "R", code=2)
    assert words in err
    assert f"population: {name}" in err
    assert "^" * len(name) in err
    assert not (program.folder / "R").exists()


def test_a_limit_of_tokens_counts_the_writer(program, server, population, game) -> None:
    population()
    file = game(population="population.yaml", limits={"tokens": 500})
    _, err = program.run("run", file, "--out", "R", code=1)
    assert "limits.tokens" in err
    assert 0 < len(server.asked) <= 12
    assert not (program.folder / "R" / "personas.parquet").exists()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_hundred_people_of_the_embedded_model_survive_a_kill(program) -> None:
    command = (
        *("personas", ROOT / "populations" / "written_adults.yaml", "-n", 100),
        *("-o", "people.parquet", "--set", "persona.attempts=1"),
        *("--set", "persona.model.max_tokens=64"),
    )
    process = program.begin(*command)
    journal = program.folder / "people.parquet.journal"
    program.wait_for(
        lambda: journal.exists() and sum(a.final for a in recorded(journal)) >= 30, timeout_s=400
    )
    process.kill()
    process.communicate()
    program.assert_nothing_left()
    before = recorded(journal)
    assert 30 <= sum(a.final for a in before) < 100
    program.run(*command, timeout_s=600)
    after = recorded(journal)
    assert after[: len(before)] == before
    made = Counter((a.agent, a.attempt) for a in after)
    assert set(made.values()) == {1}
    assert Counter(a.agent for a in after if a.final) == Counter(range(100))
    people = rows(program.folder / "people.parquet")
    assert len(people) == 100
    assert len({a.text for a in after}) > 90
    finals = {a.agent: a for a in after if a.final}
    for row in people:
        assert row["writer"] == ("model" if finals[row["agent"]].status == "ok" else "template")
        assert row["attempts"] == finals[row["agent"]].attempt + 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_cells_of_a_sweep_share_people_that_are_written_once(
    program, server, population, scenario
) -> None:
    """Also when the sweep is killed while they are written."""
    server.hold_after = 12
    path = scenario(
        agents=20,
        population=str(population()),
        model={"backend": "random"},
        sweep=[{"rounds": 1}, {"rounds": 3}, {"seed": 8}],
    )
    process = program.begin("run", path, "--out", "out")
    out = program.folder / "out"
    journal = out / "personas" / "0001.parquet.journal"
    program.wait_for(lambda: journal.exists() and len(recorded(journal)) >= 12, 120)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    program.assert_nothing_left()
    done = len(recorded(journal))
    server.hold_after = None
    earlier = len(server.asked)
    program.run("resume", "out", "--quiet", timeout_s=300)
    # The rest of the 20 that two cells share, and the 20 that the third one has for itself.
    assert len(server.asked) - earlier == (20 - done) + 20
    first, second, third = sorted((out / "cells").iterdir())
    assert rows(first / "personas.parquet") == rows(second / "personas.parquet")
    assert rows(first / "personas.parquet") != rows(third / "personas.parquet")
    assert not (out / "personas" / "0002.parquet").exists()
    table = json.loads((out / "summary.json").read_text())["cells"]
    assert [row["state"] for row in table] == ["finished"] * 3
    assert (table[0]["tokens"], table[1]["tokens"]) == (None, None)
    assert load_run(third).summary["personas"]["by_model"] == 20
