"""One persona as a state machine: asked, asked again, written by the model or by the template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentsim.config.made import read_made
from agentsim.config.population import ModelWriter, Population
from agentsim.errors import UserError
from agentsim.population import (
    Meta,
    PersonaWriter,
    attribute_names,
    backgrounds,
    copy_personas,
    facts_of,
    read_personas,
    sample,
    write_personas,
)
from agentsim.population.writer import ORCHESTRATOR, ROUND
from agentsim.rpc.messages import PERSONAS, Attempt, Completion, Request


def by_model(population: Population, **fields: Any) -> Population:
    """The population with a model for its writer."""
    contents = population.model_dump(mode="json")
    contents["persona"] = {"writer": "model", "model": {"backend": "llama_cpp"}} | fields
    return Population.model_validate_json(json.dumps(contents), strict=True)


def begin(population: Population, **fields: Any) -> PersonaWriter:
    return everybody(population, 1, **fields)[0]


def everybody(population: Population, n: int, **fields: Any) -> list[PersonaWriter]:
    people = by_model(population, **fields)
    assert isinstance(people.persona, ModelWriter)
    meta = Meta(people.persona, "json", 7)
    drawn = facts_of(sample(people, n, seed=7, session=1), people)
    return [PersonaWriter(meta, 1, agent, facts) for agent, facts in enumerate(drawn)]


def facts(request: Request) -> dict[str, Any]:
    text = request.messages[1].content
    told: dict[str, Any] = json.JSONDecoder().raw_decode(text, text.index("{"))[0]
    return told


def good(request: Request, **changes: Any) -> str:
    """A reply that states every fact."""
    told = facts(request)
    rest = " ".join(f"Your {name} is {value}." for name, value in told.items())
    parts = {"name": "Ada Berg", "age": told["age"], "gender": told["gender"], "job": "clerk"}
    return json.dumps(parts | {"description": f"You are a calm person. {rest}"} | changes)


def reply(request: Request, text: str, finish_reason: str = "stop", error: str = "") -> Completion:
    return Completion(
        session=request.session,
        round=request.round,
        agent=request.agent,
        step=request.step,
        attempt=request.attempt,
        text=text,
        finish_reason=finish_reason,
        error=error,
        prompt_tokens=10,
        completion_tokens=5,
    )


def test_a_good_text_is_taken_at_once(adults: Population) -> None:
    person = begin(adults)
    request = person.prepare()
    assert (request.round, request.model, request.attempt) == (ROUND, PERSONAS, 0)
    attempt, again = person.digest(reply(request, good(request)))
    assert again is None
    assert (attempt.status, attempt.reason, attempt.final) == ("ok", "", True)
    assert (attempt.worker, attempt.value) == (ORCHESTRATOR, None)
    written = person.written
    assert written is not None
    assert (written.writer, written.attempts) == ("model", 1)
    assert written.draft is not None
    assert written.draft.name == "Ada Berg"
    assert set(written.checks or {}) == set(adults.attributes)
    assert set((written.checks or {}).values()) == {"stated"}


BAD = {
    "absent": (lambda r: good(r, description="You are a calm person."), "stop", "", "no_answer"),
    "contradicted": (lambda r: good(r, age=17), "stop", "", "ambiguous"),
    "no parts": (lambda r: "Once upon a time", "stop", "", "no_answer"),
    "cut": (good, "length", "", "truncated"),
    "empty": (lambda r: " \n", "stop", "", "empty"),
    "failed": (lambda r: "", "error", "HTTP 500", "failed"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_text_is_asked_for_again_and_then_written_from_the_template(
    adults: Population, case: str
) -> None:
    text, finish_reason, error, status = BAD[case]
    person = begin(adults, attempts=2)
    first = person.prepare()
    attempt, second = person.digest(reply(first, text(first), finish_reason, error))
    assert (attempt.status, attempt.final) == (status, False)
    assert attempt.reason
    assert second is not None
    assert second.attempt == 1
    assert second.seed != first.seed
    assert second.messages[0] == first.messages[0]
    is_told = "earlier reply" in second.messages[1].content
    assert is_told is (case not in ("empty", "failed"))
    assert text(first)[:40] not in second.messages[1].content or case in ("empty", "failed")
    attempt, third = person.digest(reply(second, text(second), finish_reason, error))
    assert third is None
    assert (attempt.status, attempt.final) == (status, True)
    assert person.written is not None
    assert (person.written.writer, person.written.attempts) == ("template", 2)
    assert person.written.draft is None


def test_the_reminder_names_what_was_wrong(adults: Population) -> None:
    person = begin(adults)
    first = person.prepare()
    told = facts(first)
    text = good(
        first,
        description="You are calm and of few words, and you like the sea.",
        age=told["age"] + 1,
    )
    attempt, second = person.digest(reply(first, text))
    assert attempt.reason == "contradicted: age"
    assert second is not None
    words = second.messages[1].content
    assert f"contradicts age ({told['age']})" in words
    assert f"education ({told['education']})" in words


def test_a_good_text_after_a_bad_one_counts(adults: Population) -> None:
    person = begin(adults)
    first = person.prepare()
    _, second = person.digest(reply(first, "nothing"))
    assert second is not None
    person.digest(reply(second, good(second)))
    assert person.written is not None
    assert (person.written.writer, person.written.attempts) == ("model", 2)


def test_seeds_differ_between_people_and_attempts(adults: Population) -> None:
    people = everybody(adults, 3)
    seeds = {person.prepare().seed for person in people}
    _, again = people[0].digest(reply(people[0].prepare(), ""))
    assert again is not None
    assert len(seeds | {again.seed}) == 4


def test_a_persona_is_rebuilt_from_what_was_recorded(adults: Population) -> None:
    person = begin(adults)
    recorded: list[Attempt] = []
    request: Request | None = person.prepare()
    for text in ("nothing", ""):
        assert request is not None
        attempt, request = person.digest(reply(request, text))
        recorded.append(attempt)
    again = begin(adults)
    assert [again.recall(attempt) for attempt in recorded] == [True, True]
    assert again.prepare() == request
    assert not again.recall(recorded[0])
    attempt, _ = person.digest(reply(request, good(request))) if request else (None, None)
    assert attempt is not None
    assert again.recall(attempt)
    assert again.written == person.written


def written_file(adults: Population, path: Path, n: int = 12) -> Population:
    """A file of which every third person is written from the template."""
    people = everybody(adults, n, attempts=1)
    for agent, person in enumerate(people):
        request = person.prepare()
        person.digest(reply(request, good(request) if agent % 3 else "nothing"))
    written = [person.written for person in people if person.written]
    population = by_model(adults, attempts=1)
    write_personas(path, population, agents=n, sessions=1, seed=7, written=written)
    return population


def test_the_file_says_who_wrote_and_what_was_checked(adults: Population, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    population = written_file(adults, path)
    rows = read_personas(path, session=1).to_pylist()
    told = backgrounds(sample(population, 12, seed=7, session=1), population).to_pylist()
    assert [row["writer"] for row in rows] == ["template", "model", "model"] * 4
    for row, template in zip(rows, told, strict=True):
        assert row["attempts"] == 1
        if row["writer"] == "template":
            assert row["background"] == template
            assert row["profile"] is row["checks"] is None
        else:
            assert row["background"].startswith(
                f"Ada Berg, {row['age']}, {row['gender']}, clerk.\n"
            )
            assert row["profile"]["age"] == row["age"]
            assert row["checks"] == dict.fromkeys(adults.attributes, "stated")
    assert attribute_names(read_personas(path, session=1).column_names) == list(adults.attributes)


def test_a_file_tells_what_it_was_made_from(adults: Population, tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    population = written_file(adults, path)
    made = read_made(str(path), "people.parquet")
    assert (made.agents, made.sessions, made.seed, made.people) == (12, 1, 7, 12)
    assert made.population == population


@pytest.mark.parametrize(("agents", "sessions"), [(3, 4), (5, 2), (12, 1), (1, 12)])
def test_sessions_take_rows_in_order(
    adults: Population, tmp_path: Path, agents: int, sessions: int
) -> None:
    source, path = tmp_path / "people.parquet", tmp_path / "personas.parquet"
    written_file(adults, source)
    made = read_made(str(source), "people.parquet")
    copy_personas(path, made, agents=agents, sessions=sessions)
    there = read_personas(source, session=1).to_pylist()
    for session in range(1, sessions + 1):
        rows = read_personas(path, session=session).to_pylist()
        assert [row["agent"] for row in rows] == list(range(agents))
        assert {row["session"] for row in rows} == {session}
        for row, old in zip(rows, there[(session - 1) * agents :], strict=False):
            assert {**row, "session": 0, "agent": 0} == {**old, "session": 0, "agent": 0}


def test_rows_are_taken_across_the_files_own_sessions(adults: Population, tmp_path: Path) -> None:
    source, path = tmp_path / "people.parquet", tmp_path / "personas.parquet"
    write_personas(source, adults, agents=4, sessions=3, seed=7)
    copy_personas(path, read_made(str(source), "p"), agents=5, sessions=2)
    there = [row for s in (1, 2, 3) for row in read_personas(source, session=s).to_pylist()]
    here = [row for s in (1, 2) for row in read_personas(path, session=s).to_pylist()]
    assert [row["background"] for row in here] == [row["background"] for row in there[:10]]


@pytest.mark.parametrize("name", ["writer", "Attempts", "profile", "checks"])
def test_columns_of_the_model_are_reserved_where_a_model_writes(
    build: Any, tmp_path: Path, name: str
) -> None:
    population = build(**{name: {"categories": {"a": 1.0}}})
    write_personas(tmp_path / "a.parquet", population, agents=1, sessions=1, seed=1)
    with pytest.raises(UserError, match=name):
        sample(by_model(population), 1, seed=1, session=1)
