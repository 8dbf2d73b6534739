"""Whole games in one process: the real orchestrator and the real workers, without processes.

What a test decides: in which order messages arrive, which workers are lost, and when the
orchestrator dies. Replies depend on the request alone, so every game has one right table.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentsim import plan
from agentsim.config import Host as HostEntry
from agentsim.config import Hostfile, Scenario
from agentsim.errors import PeerLost
from agentsim.games.guess_average import GuessAverageSpec
from agentsim.orchestrator.course import RunSpec
from agentsim.orchestrator.ledger import Ledger
from agentsim.orchestrator.observer import Silent
from agentsim.orchestrator.play import Play
from agentsim.population import write_personas
from agentsim.results import Journal, Kind, RunDirectory, RunStart, to_json
from agentsim.rpc.codec import decode, encode
from agentsim.rpc.envelope import NODE, ORCHESTRATOR, Envelope
from agentsim.rpc.envelope import Kind as Wire
from agentsim.rpc.messages import Completion, Request
from agentsim.worker.host import Host

LANGUAGE = {"backend": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "fake"}


class Killed(BaseException):
    """The orchestrator dies here."""


def reply(request: Request) -> Completion:
    """A number from the seed; now and then none, so that it is asked again."""
    number = random.Random(request.seed).randint(0, 100)
    text = "I would rather not say." if request.seed % 3 == 0 else f"My guess is {number}."
    return Completion(
        *(request.session, request.round, request.agent, request.step, request.attempt),
        text=text,
        finish_reason="stop",
        prompt_tokens=sum(len(message.content) for message in request.messages),
        completion_tokens=3,
    )


@dataclass
class Game:
    """A game that can be played in pieces.

    Attributes:
        scenario: what is played.
        path: the run's directory.
        nodes: machines; the workers are shared out over them.
        asked: requests that reached the model, by (session, round, agent, attempt).
    """

    scenario: Scenario
    path: Path
    nodes: int = 2
    workers: int = 2
    choose: random.Random = field(default_factory=lambda: random.Random(0))
    asked: list[tuple[int, int, int, int]] = field(default_factory=list)

    def spec(self) -> RunSpec:
        game = GuessAverageSpec.model_validate_json(json.dumps(self.scenario.game))
        hosts = Hostfile(
            hosts=[HostEntry(address=f"h{i}", workers=self.workers) for i in range(self.nodes)]
        )
        return RunSpec(self.scenario, game, plan.make(self.scenario, hosts), "m")

    async def play(
        self,
        *,
        until: Callable[[int], bool] = lambda appended: False,
        lose: Callable[[int], list[int]] = lambda received: [],
        twice: Callable[[int], bool] = lambda received: False,
        restarts: int = 16,
    ) -> bool:
        """Begin, or go on; True when the game ended, False when the orchestrator was killed.

        Args:
            until: whether the orchestrator dies instead of appending its nth record, from 1.
            lose: which workers, as places among the living ones, are lost after the nth message.
            twice: whether the nth message arrives twice.
            restarts: lost workers that are replaced.
        """
        limits = self.scenario.limits.model_copy(update={"restarts": restarts})
        self.scenario = self.scenario.model_copy(update={"limits": limits})
        resume = self.path.exists()
        directory = RunDirectory.open(self.path) if resume else RunDirectory.create(self.path)
        journal = (Journal.open if resume else Journal.create)(directory.journal)
        if not directory.personas.exists():
            self._people(directory.personas)
        spec = self.spec()
        start = RunStart("id", self.scenario.agents, self.scenario.sessions, 3, "m", "")
        journal.append(Kind.RUN, to_json(start))
        mortal = _Mortal(journal, until)
        workers = Workers(self, spec.plan, lose, twice)
        try:
            await Play(
                spec,
                workers,
                ledger=Ledger(mortal, print),  # type: ignore[arg-type]
                directory=directory,
                observer=Silent(),
                format="text",
            ).run(resume=resume)
        except Killed:
            return False
        finally:
            await workers.close()
            journal.close()
        return True

    def _people(self, path: Path) -> None:
        from agentsim.config import Population

        drawn = Population.model_validate(
            {"attributes": {"side": {"categories": {"left": 0.5, "right": 0.5}}}}
        )
        size = {"agents": self.scenario.agents, "sessions": self.scenario.sessions}
        write_personas(path, drawn, seed=self.scenario.seed, **size)


class _Mortal:
    """A journal whose owner dies in the middle of things."""

    def __init__(self, journal: Journal, until: Callable[[int], bool]) -> None:
        self._journal = journal
        self._until = until
        self._appended = 0
        self.path = journal.path
        self.sync = journal.sync

    def append(self, kind: Kind, body: bytes | memoryview) -> int:
        self._appended += 1
        if self._until(self._appended):
            raise Killed
        return self._journal.append(kind, body)


class Workers:
    """Real hosts of agents, as tasks."""

    def __init__(
        self,
        game: Game,
        run_plan: plan.RunPlan,
        lose: Callable[[int], list[int]],
        twice: Callable[[int], bool],
    ) -> None:
        self._game = game
        self._lose = lose
        self._twice = twice
        self._received = 0
        self._inbox: list[Envelope | PeerLost] = []
        self._news = asyncio.Event()
        self._hosts: dict[int, tuple[Host, asyncio.Task[None]]] = {}
        for worker in range(run_plan.workers):
            self._start(worker)

    def _start(self, worker: int) -> None:
        async def put(envelope: Envelope) -> None:
            if envelope.to == NODE:
                requests = decode(envelope.body, list[Request])
                self._game.asked += [(r.session, r.round, r.agent, r.attempt) for r in requests]
                done = encode([reply(request) for request in requests])
                host.receive(Envelope(Wire.COMPLETIONS, worker, NODE, done))
            else:
                assert envelope.to == ORCHESTRATOR
                self._inbox.append(envelope)
                self._news.set()

        host = Host(worker, put, Path("unused"))
        self._hosts[worker] = host, asyncio.ensure_future(host.play())

    async def send(self, worker: int, kind: Wire, message: object) -> None:
        if worker in self._hosts:
            host, _ = self._hosts[worker]
            host.receive(Envelope(kind, worker, ORCHESTRATOR, encode(message)))

    async def receive(self) -> Envelope:
        """Messages of different workers overtake each other; those of one do not."""
        for _ in range(50):
            await asyncio.sleep(0)  # let the hosts work
        while not self._inbox:
            self._news.clear()
            for _, task in self._hosts.values():
                if task.done():
                    task.result()
            await asyncio.wait_for(self._news.wait(), 60)
        self._received += 1
        for place in self._lose(self._received):
            self._lost(sorted(self._hosts)[place % len(self._hosts)])
        loss = next((item for item in self._inbox if isinstance(item, PeerLost)), None)
        if loss is not None:
            self._inbox.remove(loss)
            raise loss
        item = self._game.choose.choice(self._inbox)
        assert isinstance(item, Envelope)
        first = next(i for i in self._inbox if isinstance(i, Envelope) and i.sender == item.sender)
        assert isinstance(first, Envelope)
        if not self._twice(self._received):
            self._inbox.remove(first)
        return first

    def _lost(self, worker: int) -> None:
        """It is gone; what it had sent may still arrive, before or after that is known."""
        self._hosts.pop(worker)[1].cancel()
        self._inbox.append(PeerLost(f"worker {worker} is gone", (worker,)))

    async def spawn(self, node: int, workers: list[int]) -> None:
        for worker in workers:
            self._start(worker)

    async def end(self, workers: list[int]) -> None:
        assert not set(workers) & self._hosts.keys()

    def alive(self) -> list[int]:
        return list(range(self._game.nodes))

    def window(self, worker: int) -> int:
        return 3

    async def close(self) -> None:
        for _, task in self._hosts.values():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def scenario(**fields: Any) -> Scenario:
    """A small game: 7 agents, 3 rounds."""
    return Scenario.model_validate(
        {
            "name": "test",
            "agents": 7,
            "rounds": 3,
            "seed": 5,
            "game": {"type": "guess_average"},
            "model": LANGUAGE,
            "memory": "transcript",
            "limits": {"missing_share": 1.0},
        }
        | fields
    )
