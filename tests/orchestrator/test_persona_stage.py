"""The stage that writes personas, over nodes that answer as the test says."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentsim.config.population import ModelWriter, Population
from agentsim.errors import LimitReached, ModelError
from agentsim.orchestrator.ledger import Ledger
from agentsim.orchestrator.observer import Silent, Writing
from agentsim.orchestrator.personas import People, Stage, by_person
from agentsim.population import Meta
from agentsim.results import Journal, frames
from agentsim.results import Kind as Record
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope, Kind
from agentsim.rpc.messages import Attempt, Completion, Request

GOOD = json.dumps(
    {
        "name": "Ada",
        "age": 30,
        "gender": "f",
        "job": "clerk",
        "description": "You are calm, and you live in a big town by the sea.",
    }
)
BAD = "nothing of use"
Say = Callable[[Request], str | Completion]


def people(n: int, *, sessions: int = 1, attempts: int = 3) -> People:
    contents = {
        "attributes": {"town": {"categories": {"big": 1.0}}},
        "persona": {"writer": "model", "model": {"backend": "llama_cpp"}, "attempts": attempts},
    }
    population = Population.model_validate_json(json.dumps(contents), strict=True)
    assert isinstance(population.persona, ModelWriter)
    return People(population, n, sessions, Meta(population.persona, "text", 1))


class FakeNodes:
    """Answers requests in order of arrival, a message each."""

    def __init__(self, say: Say, places: Sequence[int] = (4,)) -> None:
        self.asked: list[Request] = []
        self.most_open = [0 for _ in places]
        self._open = [0 for _ in places]
        self._say = say
        self._places = list(places)
        self._waiting: asyncio.Queue[tuple[int, Request]] = asyncio.Queue()

    def places(self, model: str) -> list[int]:
        assert model == "personas"
        return self._places

    async def ask(self, node: int, requests: Sequence[Request]) -> None:
        for request in requests:
            self.asked.append(request)
            self._open[node] += 1
            self.most_open[node] = max(self.most_open[node], self._open[node])
            self._waiting.put_nowait((node, request))

    async def receive(self) -> Envelope:
        node, request = await asyncio.wait_for(self._waiting.get(), 5)
        self._open[node] -= 1
        said = self._say(request)
        completion = said if isinstance(said, Completion) else completed(request, said)
        return Envelope(Kind.COMPLETIONS, ORCHESTRATOR, NODE, encode([completion]))


def completed(request: Request, text: str, error: str = "") -> Completion:
    return Completion(
        request.session,
        request.round,
        request.agent,
        request.step,
        request.attempt,
        text,
        "error" if error else "stop",
        error,
        prompt_tokens=7,
        completion_tokens=3,
    )


class Watcher(Silent):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Writing] = []

    def wrote(self, progress: Writing) -> None:
        self.told.append(progress)


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    with Journal.create(tmp_path / "journal") as journal:
        yield journal


def stage(nodes: FakeNodes, who: People, journal: Journal, **options: Any) -> Stage:
    ledger = Ledger(journal, lambda text: None)
    return Stage(nodes, who, ledger=ledger, observer=options.pop("observer", Silent()), **options)


def recorded(journal: Journal) -> list[Attempt]:
    return [
        attempt
        for frame in frames(journal.path)
        if frame.kind is Record.ATTEMPTS
        for attempt in decode(frame.body, list[Attempt])
    ]


async def test_everybody_is_written_in_order(journal: Journal) -> None:
    nodes = FakeNodes(lambda request: GOOD)
    written = await stage(nodes, people(20, sessions=2), journal).run()
    assert len(written) == 40
    assert {item.writer for item in written} == {"model"}
    asked = [(request.session, request.agent) for request in nodes.asked]
    assert asked == [(session, agent) for session in (1, 2) for agent in range(20)]
    assert len(recorded(journal)) == 40


async def test_the_window_is_bounded_and_used_on_every_node(journal: Journal) -> None:
    nodes = FakeNodes(lambda request: GOOD, places=[4, 16])
    await stage(nodes, people(200), journal).run()
    assert nodes.most_open == [5, 20]
    assert len(nodes.asked) == 200


async def test_bad_texts_are_asked_again_and_counted(journal: Journal) -> None:
    def say(request: Request) -> str:
        return GOOD if request.agent % 4 or (request.agent % 8 and request.attempt) else BAD

    watcher = Watcher()
    written = await stage(FakeNodes(say), people(16), journal, observer=watcher).run()
    last = watcher.told[-1]
    assert (last.done, last.by_model, last.asked_again, last.from_template) == (16, 14, 2, 2)
    assert Counter(item.writer for item in written) == {"model": 14, "template": 2}
    assert last.tokens == 10 * len(recorded(journal)) == 10 * (12 + 2 * 2 + 2 * 3)
    assert [told.done for told in watcher.told] == sorted(told.done for told in watcher.told)


async def test_an_attempt_is_journaled_before_it_counts(journal: Journal) -> None:
    class Check(Silent):
        def wrote(self, progress: Writing) -> None:
            finals = sum(attempt.final for attempt in recorded(journal))
            assert progress.done <= finals

    await stage(FakeNodes(lambda request: GOOD), people(10), journal, observer=Check()).run()


@pytest.mark.parametrize("after", [1, 7, 30])
async def test_nobody_is_asked_twice_when_the_stage_is_resumed(
    journal: Journal, after: int
) -> None:
    class Killed(Exception):
        pass

    def say(request: Request) -> str:
        if len(first.asked) and len(recorded(journal)) >= after:
            raise Killed
        return GOOD if request.agent % 3 else BAD

    first = FakeNodes(say)
    with pytest.raises(Killed):
        await stage(first, people(20), journal).run()
    known = recorded(journal)
    assert len(known) >= after
    second = FakeNodes(lambda request: GOOD if request.agent % 3 else BAD)
    written = await stage(second, people(20), journal).run(by_person(known))
    have = {(a.session, a.agent, a.attempt) for a in known}
    assert not [r for r in second.asked if (r.session, r.agent, r.attempt) in have]
    whole = await stage(
        FakeNodes(lambda r: GOOD if r.agent % 3 else BAD), people(20), journal
    ).run()
    assert written == whole


async def test_a_whole_journal_asks_nobody(journal: Journal) -> None:
    await stage(FakeNodes(lambda request: GOOD), people(5), journal).run()
    nodes = FakeNodes(lambda request: GOOD)
    written = await stage(nodes, people(5), journal).run(by_person(recorded(journal)))
    assert nodes.asked == []
    assert len(written) == 5


async def test_what_got_no_reply_is_asked_again_after_a_resume(journal: Journal) -> None:
    def flaky(request: Request) -> Completion | str:
        return completed(request, "", "HTTP 500") if request.agent == 2 else GOOD

    written = await stage(FakeNodes(flaky), people(5), journal).run()
    assert [item.writer for item in written].count("template") == 1
    nodes = FakeNodes(lambda request: GOOD)
    written = await stage(nodes, people(5), journal).run(by_person(recorded(journal)))
    assert [(request.agent, request.attempt) for request in nodes.asked] == [(2, 0)]
    assert {item.writer for item in written} == {"model"}


async def test_a_reply_after_one_that_did_not_come_is_not_asked_for_again(
    journal: Journal,
) -> None:
    def late(request: Request) -> Completion | str:
        return GOOD if request.attempt else completed(request, "", "HTTP 500")

    await stage(FakeNodes(late), people(3), journal).run()
    nodes = FakeNodes(lambda request: GOOD)
    await stage(nodes, people(3), journal).run(by_person(recorded(journal)))
    assert nodes.asked == []


@pytest.mark.parametrize("n", [3, 200])
async def test_the_stage_ends_when_no_server_answers(journal: Journal, n: int) -> None:
    nodes = FakeNodes(lambda request: completed(request, "", "cannot connect"))
    with pytest.raises(ModelError, match=r"cannot connect.*0 of"):
        await stage(nodes, people(n), journal).run()
    assert len(nodes.asked) < 150


async def test_a_limit_ends_the_stage(journal: Journal) -> None:
    def spent(tokens: int) -> None:
        if tokens > 50:
            raise LimitReached("enough")

    nodes = FakeNodes(lambda request: GOOD)
    with pytest.raises(LimitReached):
        await stage(nodes, people(100), journal, spent=spent).run()
    assert len(recorded(journal)) == 6
