"""Runs as the orchestrator records them, small enough to be worked out by hand or by numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from agentsim.results import (
    Journal,
    Kind,
    RecordedAttempts,
    RoundGatherer,
    RunDirectory,
    RunEnd,
    RunFacts,
    RunStart,
    TableWriter,
    make_manifest,
    to_json,
    write_manifest,
)
from agentsim.rpc import codec
from agentsim.rpc.messages import Answers, Attempt, Message, Settle

RULE = {"low": 0.0, "high": 100.0, "slope": 2 / 3, "intercept": 0.0}


@dataclass
class Recorder:
    """Writes journal and tables the way the orchestrator does."""

    path: Path
    agents: int
    sessions: int = 1
    rounds: int = 1
    model: str = "cognitive_hierarchy"
    hold_rows: int = 16 * 1024
    rule: dict[str, float] | None = field(default_factory=lambda: dict(RULE))
    people: dict[str, object] | None = None

    def __post_init__(self) -> None:
        self.directory = RunDirectory.create(self.path)
        scenario = {
            "name": "guess-two-thirds",
            "seed": 7,
            "agents": self.agents,
            "sessions": self.sessions,
            "rounds": self.rounds,
            "game": {"type": "guess_average", "range": [0, 100], "target": "2/3 * mean"},
            "model": {"backend": self.model},
        }
        facts = RunFacts(
            run_id="r1", scenario=scenario, files={}, rule=self.rule, people=self.people
        )
        write_manifest(self.directory, make_manifest(facts))
        self.journal = Journal.create(self.directory.journal)
        self.writer = TableWriter(self.directory, hold_rows=self.hold_rows)
        start = RunStart(
            "r1", self.agents, self.sessions, self.rounds, self.model, "2026-11-29T23:19:00+00:00"
        )
        self.journal.append(Kind.RUN, to_json(start))

    def scripted(self, session: int, round: int, values: Sequence[float]) -> None:
        """A round of scripted players, in two messages, the higher agents first."""
        gatherer = RoundGatherer(self.agents)
        half = len(values) // 2
        for worker, agents in ((1, range(half, len(values))), (0, range(half))):
            column = np.array(agents, np.uint32)
            answers = Answers(
                session,
                round,
                worker,
                codec.to_bytes(column),
                codec.to_bytes(np.asarray(values, np.float64)[column]),
            )
            self.journal.append(Kind.ANSWERS, codec.encode(answers))
            gatherer.add_answers(answers)
        self.settle(gatherer, RecordedAttempts(self.directory.journal), session, round)

    def attempted(self, session: int, round: int, batches: Sequence[Sequence[Attempt]]) -> None:
        """A round of language-model players; each batch is one message."""
        gatherer = RoundGatherer(self.agents)
        recorded = RecordedAttempts(self.directory.journal)
        for batch in batches:
            recorded.add(self.journal.append(Kind.ATTEMPTS, codec.encode(list(batch))), len(batch))
            gatherer.add_attempts(batch)
        self.settle(gatherer, recorded, session, round)

    def settle(
        self, gatherer: RoundGatherer, recorded: RecordedAttempts, session: int, round: int
    ) -> None:
        valid = gatherer.values[gatherer.ok]
        mean = float(valid.mean()) if valid.size else None
        target = None if mean is None else mean * 2 / 3
        winners: list[int] = []
        if target is not None:
            winners = [int(np.nanargmin(np.abs(gatherer.values - target)))]
        settle = Settle(
            session=session,
            round=round,
            n=self.agents,
            statuses=gatherer.statuses,
            target=target,
            mean=mean,
            median=float(np.median(valid)) if valid.size else None,
            winning_guess=float(gatherer.values[winners[0]]) if winners else None,
            winners=winners,
            payoffs=[100.0] * len(winners),
            announced={} if mean is None or target is None else {"mean": mean, "target": target},
            wall_s=1.5,
        )
        self.journal.append(Kind.SETTLE, codec.encode(settle))
        self.writer.write(gatherer.columns(settle, model=self.model), recorded, settle)

    def end(self, end: RunEnd | None) -> RunDirectory:
        """Close; without a record of the end the run looks as if it was killed."""
        self.writer.flush()
        if end is not None:
            self.journal.append(Kind.END, to_json(end))
        self.journal.close()
        return self.directory


FINISHED = RunEnd("finished", wall_s=10.0, cpu_s=3.0)


def attempt(agent: int, number: int, status: str, value: float | None = None, **other: object):
    """The `number`th attempt (from 0) of an agent in round 1 of session 1."""
    fields: dict[str, object] = {
        "session": 1,
        "round": 1,
        "agent": agent,
        "step": 0,
        "attempt": number,
        "messages": [Message("system", "the rules"), Message("user", f"you are agent {agent}")],
        "format": "text",
        "seed": 2**64 - 1 - agent,
        "text": f"I guess {value}",
        "finish_reason": "stop",
        "status": status,
        "value": value,
        "reason": "" if status == "ok" else f"{status} it was",
        "final": status == "ok",
        "error": "",
        "prompt_tokens": 100,
        "completion_tokens": 10 + agent,
        "latency_s": 0.5 + agent / 8,
        "tries": 1,
        "endpoint": "http://127.0.0.1:8080/v1",
        "request_id": f"r-{agent}-{number}",
        "choice": 0,
        "worker": agent % 2,
    }
    return Attempt(**(fields | other))  # type: ignore[arg-type]


def language_run(path: Path) -> RunDirectory:
    """One round, five agents: two answer at once, one at the second try, one is cut for good, and
    one never answers; the first agent's reply arrives twice."""
    recorder = Recorder(path, agents=5, model="smollm2-135m-instruct")
    first = attempt(0, 0, "ok", 30.0)
    recorder.attempted(
        1,
        1,
        [
            [first, attempt(1, 0, "no_answer")],
            [first, attempt(3, 0, "truncated"), attempt(2, 0, "ok", 60.0)],
            [attempt(1, 1, "ok", 45.0, messages=[Message("user", "again – ünï")])],
            [attempt(3, 1, "truncated", final=True, text="")],
        ],
    )
    return recorder.end(FINISHED)
