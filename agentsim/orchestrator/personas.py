"""The stage before the game: a language model writes every persona, through the nodes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentsim.config.population import Population
from agentsim.errors import ModelError
from agentsim.ids import Round
from agentsim.orchestrator.ledger import Ledger
from agentsim.orchestrator.observer import Watcher, Writing
from agentsim.population import Meta, PersonaWriter, Written, facts_of, sample
from agentsim.population.writer import ROUND
from agentsim.results import Kind as Record
from agentsim.results import RecordedAttempts
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.envelope import Envelope, Kind
from agentsim.rpc.messages import PERSONAS, Attempt, Completion, Request

_SYNC_S = 1.0
# So many personas in a row that got no reply at all say that the server is gone.
_FAILED_IN_A_ROW = 25


class Nodes(Protocol):
    """The way to the nodes' models, and from them."""

    def places(self, model: str) -> list[int]:
        """How many requests a model's servers take at once, for each node."""

    async def ask(self, node: int, requests: Sequence[Request]) -> None:
        """Send requests to a node."""

    async def receive(self) -> Envelope:
        """The next message of any node."""


@dataclass(frozen=True, slots=True)
class People:
    """Who is to be written.

    Attributes:
        agents: of each session.
        sessions: how many.
        meta: what their writers share.
    """

    population: Population
    agents: int
    sessions: int
    meta: Meta

    def __len__(self) -> int:
        return self.agents * self.sessions

    def __iter__(self) -> Iterator[PersonaWriter]:
        """Everybody, in order of session and agent; one session is drawn at a time."""
        for session in range(1, self.sessions + 1):
            drawn = sample(self.population, self.agents, seed=self.meta.seed, session=session)
            for agent, facts in enumerate(facts_of(drawn, self.population)):
                yield PersonaWriter(self.meta, session, agent, facts)


Known = Mapping[tuple[int, int], Sequence[Attempt]]
"""Attempts that were recorded before, by session and agent."""


def by_person(attempts: Iterable[Attempt]) -> Known:
    """Recorded attempts by session and agent, in the order in which they were made.

    The last ones of a person are left out when they got no reply: they are made again.
    """
    known: dict[tuple[int, int], dict[int, Attempt]] = {}
    for attempt in attempts:
        of_person = known.setdefault((attempt.session, attempt.agent), {})
        earlier = of_person.get(attempt.attempt)
        if earlier is None or earlier.error:
            of_person[attempt.attempt] = attempt
    return {who: _with_reply([of[n] for n in sorted(of)]) for who, of in known.items()}


def _with_reply(attempts: list[Attempt]) -> list[Attempt]:
    while attempts and attempts[-1].error:
        attempts.pop()
    return attempts


@dataclass(slots=True)
class _Desk:
    """One node: how many requests it may have, and who waits for it."""

    window: int
    open: dict[tuple[int, int], PersonaWriter] = field(default_factory=dict)


class Stage:
    """Writes personas; what comes in is journaled before it counts.

    Args:
        nodes: they serve the model `personas`.
        people: who is to be written.
        ledger: takes every attempt.
        observer: is told how it goes.
        spent: is told the tokens so far, and may raise to end the stage.

    Attributes:
        tokens: of prompts and replies so far, those of an earlier incarnation included.
        recorded: where the attempts lie in the journal, by session.
    """

    def __init__(
        self,
        nodes: Nodes,
        people: People,
        *,
        ledger: Ledger,
        observer: Watcher,
        spent: Callable[[int], None] = lambda tokens: None,
    ) -> None:
        self.tokens = 0
        self.recorded: dict[int, RecordedAttempts] = {}
        self._nodes = nodes
        self._people = people
        self._ledger = ledger
        self._observer = observer
        self._spent = spent
        # A few more than the servers take, so that none waits for this loop.
        self._desks = [_Desk(n + max(1, n // 4)) for n in nodes.places(PERSONAS)]
        self._written: list[Written | None] = [None] * len(people)
        self._progress = Writing(total=len(people))
        self._failed_in_a_row = 0
        self._synced_s = time.monotonic()

    async def run(self, known: Known | None = None) -> list[Written]:
        """Write everybody.

        Args:
            known: attempts that were recorded before; they are not made again.

        Returns:
            What came of each, in order of session and agent.

        Raises:
            ModelError: the model's servers give no replies.
            AgentsimError: a node was lost, or the journal cannot be written.
        """
        todo = self._recalled(known or {})
        self._observer.wrote(self._progress)
        await self._fill(todo)
        while any(desk.open for desk in self._desks):
            envelope = await self._nodes.receive()
            if envelope.kind is Kind.COMPLETIONS:
                await self._take(decode(envelope.body, list[Completion]))
                await self._fill(todo)
        await self._ledger.sync()
        done = [written for written in self._written if written is not None]
        assert len(done) == len(self._people)
        return done

    def _recalled(self, known: Known) -> Iterator[PersonaWriter]:
        """Those who are not written yet, as far as is known."""
        for person in self._people:
            for attempt in known.get(person.key, ()):
                if person.recall(attempt):
                    self.tokens += attempt.prompt_tokens + attempt.completion_tokens
            if person.written is None:
                yield person
            else:
                self._note(person)

    async def _fill(self, todo: Iterator[PersonaWriter]) -> None:
        """Give every node as many requests as it may have."""
        for node, desk in enumerate(self._desks):
            requests = []
            while len(desk.open) < desk.window and (person := next(todo, None)) is not None:
                desk.open[person.key] = person
                requests.append(person.prepare())
            if requests:
                await self._nodes.ask(node, requests)

    async def _take(self, completions: Sequence[Completion]) -> None:
        """Read replies; journal the attempts; ask again what cannot be used."""
        key = (completions[0].session, completions[0].agent)
        node = next(i for i, desk in enumerate(self._desks) if key in desk.open)
        desk, again, attempts = self._desks[node], [], []
        for completion in completions:
            person = desk.open[completion.session, completion.agent]
            attempt, request = person.digest(completion)
            attempts.append(attempt)
            if request is not None:
                again.append(request)
        await self._record(attempts)
        for attempt in attempts:
            person = desk.open[attempt.session, attempt.agent]
            self.tokens += attempt.prompt_tokens + attempt.completion_tokens
            if person.written is not None:
                del desk.open[person.key]
                self._note(person)
                self._watch(attempt)
        self._observer.wrote(self._progress)
        self._spent(self.tokens)
        if again:
            await self._nodes.ask(node, again)
        if time.monotonic() - self._synced_s > _SYNC_S:
            await self._ledger.sync()
            self._synced_s = time.monotonic()

    async def _record(self, attempts: Sequence[Attempt]) -> None:
        offset = await self._ledger.append(Record.ATTEMPTS, encode(attempts))
        for session, count in Counter(attempt.session for attempt in attempts).items():
            if session not in self.recorded:
                key = Round(session, ROUND)
                self.recorded[session] = RecordedAttempts(self._ledger.path, key)
            self.recorded[session].add(offset, count)

    def _note(self, person: PersonaWriter) -> None:
        written, (session, agent) = person.written, person.key
        assert written is not None
        self._written[(session - 1) * self._people.agents + agent] = written
        self._progress = self._progress.with_one(
            by_model=written.writer == "model",
            asked_again=written.attempts > 1,
            tokens=self.tokens,
        )

    def _watch(self, last: Attempt) -> None:
        """Give up when it looks as if no server were there."""
        self._failed_in_a_row = self._failed_in_a_row + 1 if last.error else 0
        enough = min(_FAILED_IN_A_ROW, len(self._people))
        if self._failed_in_a_row >= enough:
            raise ModelError(
                f"the model that writes personas gives no replies ({last.error}); "
                f"{self._progress.done - self._failed_in_a_row:,} of {self._progress.total:,} "
                "personas are written"
            )
