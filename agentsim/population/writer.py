"""One persona and the model that writes it: a pure state machine between two model calls.

`prepare` gives the first request. `digest` takes the completion and gives the record of the
attempt, and another request while the text cannot be used and attempts are left; after that the
persona comes from the template. `recall` takes in an attempt that was recorded before. No clock,
network or random source is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from agentsim import draws
from agentsim.config.population import ModelWriter
from agentsim.draws import Stream
from agentsim.population import meta_prompt
from agentsim.population.checks import Verdict, check
from agentsim.population.drafts import Draft, read_draft
from agentsim.population.facts import Fact
from agentsim.replies import Status
from agentsim.rpc.messages import PERSONAS, Attempt, Completion, Message, Request

ROUND = 0
"""The round of requests and attempts of personas: they come before the game."""
ORCHESTRATOR = -1
"""The worker that such an attempt is recorded for: it is none."""
_SEED_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Meta:
    """What all personas of a population share.

    Attributes:
        writer: the population's.
        format: `json` where the server enforces a schema, else `text`.
        seed: the scenario's.
    """

    writer: ModelWriter
    format: meta_prompt.Format
    seed: int
    system: Message = field(init=False)
    schema: dict[str, Any] | None = field(init=False)
    english: bool = field(init=False)

    def __post_init__(self) -> None:
        language = self.writer.language
        set_ = object.__setattr__  # frozen for everybody else
        set_(self, "system", meta_prompt.system(language, self.format))
        set_(self, "schema", meta_prompt.schema() if self.format == "json" else None)
        set_(self, "english", meta_prompt.is_english(language))


@dataclass(frozen=True, slots=True)
class Written:
    """A persona that is done.

    Attributes:
        writer: who wrote it.
        attempts: how often the model was asked.
        draft: what the model wrote; None when the template writes.
        checks: what the last text that could be read says about each attribute; None without one.
    """

    writer: Literal["model", "template"]
    attempts: int
    draft: Draft | None
    checks: dict[str, Verdict] | None


class PersonaWriter:
    """One agent's persona on its way.

    Args:
        meta: what all share.
        session: from 1.
        agent: from 0.
        facts: what was drawn for this agent.

    Attributes:
        written: the result; None until there is one.
    """

    __slots__ = (
        "_agent",
        "_checks",
        "_facts",
        "_meta",
        "_open",
        "_reminder",
        "_session",
        "written",
    )

    def __init__(self, meta: Meta, session: int, agent: int, facts: Sequence[Fact]) -> None:
        self.written: Written | None = None
        self._meta = meta
        self._session = session
        self._agent = agent
        self._facts = facts
        self._checks: dict[str, Verdict] | None = None
        self._reminder = ""
        self._open = 0

    @property
    def key(self) -> tuple[int, int]:
        """Session and agent."""
        return self._session, self._agent

    def prepare(self) -> Request:
        """The next request: the first one, or the one after what was recalled."""
        return Request(
            session=self._session,
            round=ROUND,
            agent=self._agent,
            step=0,
            attempt=self._open,
            messages=[self._meta.system, meta_prompt.question(self._facts, self._reminder)],
            schema=self._meta.schema,
            seed=_seed(self._meta.seed, self._session, self._agent, self._open),
            model=PERSONAS,
        )

    def digest(self, completion: Completion) -> tuple[Attempt, Request | None]:
        """Read the reply to the open request.

        Returns:
            The record of the attempt, and the next request; None when the persona is written.
        """
        request = self.prepare()
        status, reason = self._take(completion.text, completion.finish_reason, completion.error)
        attempt = Attempt(
            session=request.session,
            round=request.round,
            agent=request.agent,
            step=request.step,
            attempt=request.attempt,
            messages=request.messages,
            format=self._meta.format,
            seed=request.seed,
            text=completion.text,
            finish_reason=completion.finish_reason,
            status=str(status),
            value=None,
            reason=reason,
            final=self.written is not None,
            error=completion.error,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            latency_s=completion.latency_s,
            tries=completion.tries,
            endpoint=completion.endpoint,
            request_id=completion.request_id,
            choice=completion.choice,
            worker=ORCHESTRATOR,
        )
        return attempt, None if self.written else self.prepare()

    def recall(self, attempt: Attempt) -> bool:
        """Take in an attempt that was recorded before.

        Returns:
            Whether it counts: one out of order, or for a persona that is done, does not.
        """
        if self.written or attempt.attempt != self._open:
            return False
        self._take(attempt.text, attempt.finish_reason, attempt.error)
        return True

    def _take(self, text: str, finish_reason: str, error: str) -> tuple[Status, str]:
        """What a reply is; decides whether the persona is written, and by whom."""
        self._open += 1
        status, reason, draft = self._judge(text, finish_reason, error)
        if status is Status.OK:
            self.written = Written("model", self._open, draft, self._checks)
        elif self._open >= self._meta.writer.attempts:
            self.written = Written("template", self._open, None, self._checks)
        return status, reason

    def _judge(self, text: str, finish_reason: str, error: str) -> tuple[Status, str, Draft | None]:
        if error:
            return Status.FAILED, error, None
        if finish_reason == "length":
            self._reminder = meta_prompt.TOO_LONG
            return Status.TRUNCATED, "cut before its end", None
        if not text.strip():
            return Status.EMPTY, "no text", None
        draft = read_draft(text)
        if isinstance(draft, str):
            self._reminder = meta_prompt.UNREADABLE
            return Status.NO_ANSWER, draft, None
        self._checks = check(draft, self._facts, english=self._meta.english)
        contradicted = self._with(Verdict.CONTRADICTED)
        absent = self._with(Verdict.ABSENT)
        if not contradicted and not absent:
            return Status.OK, "", draft
        self._reminder = meta_prompt.reminder(absent, contradicted, english=self._meta.english)
        if contradicted:
            return Status.AMBIGUOUS, f"contradicted: {_names(contradicted)}", None
        return Status.NO_ANSWER, f"absent: {_names(absent)}", None

    def _with(self, verdict: Verdict) -> list[Fact]:
        checks = self._checks or {}
        return [fact for fact in self._facts if checks.get(fact.name) is verdict]


def _names(facts: Sequence[Fact]) -> str:
    return ", ".join(fact.name for fact in facts)


def _seed(seed: int, session: int, agent: int, attempt: int) -> int:
    block, place = divmod(agent, _SEED_BLOCK)
    return _seeds(seed, session, attempt, block)[place]


@lru_cache(maxsize=256)
def _seeds(seed: int, session: int, attempt: int, block: int) -> list[int]:
    """Sampling seeds of a block of agents, 31 bits each."""
    agents = np.arange(block * _SEED_BLOCK, (block + 1) * _SEED_BLOCK, dtype=np.uint32)
    words = draws.integers(
        Stream.MODEL_SEED, agents, seed=seed, session=session, round=ROUND, attempt=attempt
    )
    seeds: list[int] = (words >> np.uint64(33)).tolist()
    return seeds
