"""One settled round as columns in agent order, and how they are gathered from what comes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agentsim.replies import STATUSES, Status
from agentsim.rpc import codec
from agentsim.rpc.messages import Answers, Attempt, Settle

_INDEX = {str(status): index for index, status in enumerate(STATUSES)}
_OK = _INDEX[Status.OK]
_FAILED = _INDEX[Status.FAILED]


@dataclass(frozen=True, slots=True, eq=False)
class RoundColumns:
    """The final actions of one round of one session, one row an agent, in agent order.

    Attributes:
        agents: `(n,)` uint32, ascending.
        values: `(n,)` float64, in the game's range; nan where the status is not ok.
        statuses: `(n,)` uint8, index in `replies.STATUSES`.
        won: `(n,)` bool.
        payoffs: `(n,)` float64, in the unit of the prize.
        attempts: `(n,)` int16, attempts that the action took; 1 for scripted players, 0 for an
            agent that never answered.
        model: who answered.
        text: the deciding reply, None where there is none; None for scripted players.
        prompt_tokens: `(n,)` int32, over all attempts; None for scripted players.
        completion_tokens: `(n,)` int32, over all attempts; None for scripted players.
        latency_s: `(n,)` float32, summed over all attempts; None for scripted players.
    """

    agents: NDArray[np.uint32]
    values: NDArray[np.float64]
    statuses: NDArray[np.uint8]
    won: NDArray[np.bool_]
    payoffs: NDArray[np.float64]
    attempts: NDArray[np.int16]
    model: str
    text: Sequence[str | None] | None = None
    prompt_tokens: NDArray[np.int32] | None = None
    completion_tokens: NDArray[np.int32] | None = None
    latency_s: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return len(self.agents)


def identity(attempt: Attempt) -> int:
    """One number for (agent, step, attempt); the same attempt may arrive twice."""
    return (attempt.agent << 64) | (attempt.step << 32) | attempt.attempt


class RoundGatherer:
    """Takes the answers and attempts of one round of one session and gives its columns.

    The orchestrator uses it while a run goes on and `rebuild` afterwards, so that both write the
    same rows. Prompts are not kept: memory is about 100 bytes an agent
    and the deciding replies.
    The first final action of an agent counts, and each (step, attempt) counts once.
    """

    def __init__(self, n: int) -> None:
        """
        Args:
            n: agents of the session, numbered from 0.
        """
        self._values = np.full(n, np.nan)
        self._statuses = np.full(n, _FAILED, np.uint8)
        self._final = np.zeros(n, np.bool_)
        self._attempts = np.zeros(n, np.int16)
        self._talk: _Talk | None = None

    @property
    def final(self) -> int:
        """How many agents have a final action."""
        return int(np.count_nonzero(self._final))

    @property
    def values(self) -> NDArray[np.float64]:
        """`(n,)`, in agent order; nan where there is no valid final action."""
        return self._values

    @property
    def ok(self) -> NDArray[np.bool_]:
        """`(n,)`, who has a valid final action."""
        return np.asarray(self._final & (self._statuses == _OK))

    @property
    def statuses(self) -> dict[str, int]:
        """How many final actions have each status; those with none left out."""
        counts = np.bincount(self._statuses[self._final], minlength=len(STATUSES))
        return {
            str(status): int(count) for status, count in zip(STATUSES, counts, strict=True) if count
        }

    def add_answers(self, answers: Answers) -> None:
        """Take final actions of scripted players."""
        agents = codec.agents_of(answers.agents)
        values = codec.values_of(answers.values)
        if self._final[agents].any():
            new = ~self._final[agents]
            agents, values = agents[new], values[new]
        self._values[agents] = values
        self._statuses[agents] = _OK
        self._final[agents] = True
        self._attempts[agents] = 1

    def add_attempts(self, attempts: Iterable[Attempt]) -> None:
        """Take attempts of players that ask a language model."""
        if self._talk is None:
            self._talk = _Talk(len(self._values))
        for attempt in attempts:
            agent = attempt.agent
            if not self._talk.add(attempt):
                continue
            self._attempts[agent] += 1
            if attempt.final and not self._final[agent]:
                self._final[agent] = True
                self._statuses[agent] = _INDEX[attempt.status]
                self._talk.text[agent] = attempt.text
                if attempt.value is not None:
                    self._values[agent] = attempt.value

    def columns(self, settle: Settle, *, model: str) -> RoundColumns:
        """The round's rows. Agents without a final action have the status `failed`.

        Args:
            settle: who won what.
            model: who answered.
        """
        n = len(self._values)
        won = np.zeros(n, np.bool_)
        payoffs = np.zeros(n)
        winners = np.asarray(settle.winners, dtype=np.int64)
        won[winners] = True
        payoffs[winners] = settle.payoffs
        columns = RoundColumns(
            agents=np.arange(n, dtype=np.uint32),
            values=self._values,
            statuses=self._statuses,
            won=won,
            payoffs=payoffs,
            attempts=self._attempts,
            model=model,
        )
        return columns if self._talk is None else self._talk.added_to(columns)


class _Talk:
    """What only players that ask a language model have."""

    def __init__(self, n: int) -> None:
        self.text: list[str | None] = [None] * n
        self.prompt_tokens = np.zeros(n, np.int32)
        self.completion_tokens = np.zeros(n, np.int32)
        self.latency_s = np.zeros(n)
        self._seen: set[int] = set()

    def add(self, attempt: Attempt) -> bool:
        """Count what it cost; False when it was counted before."""
        key = identity(attempt)
        if key in self._seen:
            return False
        self._seen.add(key)
        self.prompt_tokens[attempt.agent] += attempt.prompt_tokens
        self.completion_tokens[attempt.agent] += attempt.completion_tokens
        self.latency_s[attempt.agent] += attempt.latency_s
        return True

    def added_to(self, columns: RoundColumns) -> RoundColumns:
        return replace(
            columns,
            text=self.text,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            latency_s=self.latency_s.astype(np.float32),
        )
