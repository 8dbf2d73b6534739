"""One settled round as columns in agent order, and how they are gathered from what comes in.

A round is gathered and settled market by market, and stands in the tables whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentsim.replies import STATUSES, Status
from agentsim.results.grouping import Grouping
from agentsim.rpc import codec
from agentsim.rpc.messages import Answers, Attempt, Settle

_INDEX = {str(status): index for index, status in enumerate(STATUSES)}
_OK = _INDEX[Status.OK]
_FAILED = _INDEX[Status.FAILED]
_COLUMNS = (
    "agents",
    "values",
    "statuses",
    "won",
    "payoffs",
    "attempts",
    "groups",
    "prompt_tokens",
    "completion_tokens",
    "latency_s",
)


@dataclass(frozen=True, slots=True, eq=False)
class RoundColumns:
    """The final actions of one round, of a session or of one of its markets: one row an agent, in
    agent order.

    Attributes:
        agents: `(n,)` uint32, ascending.
        values: `(n,)` float64, in the game's range; nan where the status is not ok.
        statuses: `(n,)` uint8, index in `replies.STATUSES`.
        won: `(n,)` bool.
        payoffs: `(n,)` float64, in the unit of the prize.
        attempts: `(n,)` int16, attempts that the action took; 1 for scripted players, 0 for an
            agent that never answered.
        model: who answered.
        groups: `(n,)` uint32, the agent's group as a place in `group_names`; None when there are
            none.
        group_names: names of all groups of the session.
        text: the deciding reply, None where there is none; None for players that say nothing.
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
    groups: NDArray[np.uint32] | None = None
    group_names: Sequence[str] = ()
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
    """Takes the answers and attempts of one round of one market and gives its columns.

    The orchestrator uses it while a run goes on and `rebuild` afterwards, so that both write the
    same rows. Prompts are not kept: memory is about 100 bytes an agent
    and the deciding replies.
    The first final action of an agent counts, and each (step, attempt) counts once.
    """

    def __init__(self, grouping: Grouping | int, market: int = 0) -> None:
        """
        Args:
            grouping: of the session; a number: that many agents, numbered from 0, in one market.
            market: which one of the session, from 0.
        """
        if isinstance(grouping, int):
            grouping = Grouping(grouping)
        self._grouping = grouping
        self._market = market
        # A market of a session that has others knows its players by their place in it.
        self._players = grouping.players(market) if grouping.markets > 1 else None
        n = grouping.n if self._players is None else len(self._players)
        self._values = np.full(n, np.nan)
        self._statuses = np.full(n, _FAILED, np.uint8)
        self._final = np.zeros(n, np.bool_)
        self._attempts = np.zeros(n, np.int16)
        self._talk: _Talk | None = None
        self._said: list[str | None] | None = None

    @property
    def final(self) -> int:
        """How many agents have a final action."""
        return int(np.count_nonzero(self._final))

    @property
    def acted(self) -> NDArray[np.bool_]:
        """`(n,)`, who has a final action."""
        return self._final

    @property
    def agents(self) -> NDArray[np.uint32]:
        """`(n,)`, who plays in the market, ascending."""
        return self._grouping.players(self._market)

    @property
    def groups(self) -> NDArray[np.uint32] | None:
        """`(n,)`, the group of each, as a place in `group_names`; None when there are none."""
        return self._grouping.codes_of(self._market)

    @property
    def group_names(self) -> Sequence[str]:
        """Names of the market's groups; empty when there are none."""
        return self._grouping.names_of(self._market)

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
        return _named(np.bincount(self._statuses[self._final], minlength=len(STATUSES)))

    @property
    def group_statuses(self) -> list[dict[str, int]]:
        """The same for each of the market's groups."""
        if (groups := self.groups) is None:
            return []
        shape = (len(self.group_names), len(STATUSES))
        keys = groups[self._final].astype(np.int64) * shape[1] + self._statuses[self._final]
        counts = np.bincount(keys, minlength=shape[0] * shape[1]).reshape(shape)
        return [_named(row) for row in counts]

    def add_answers(self, answers: Answers) -> None:
        """Take final actions of scripted players."""
        agents, values = codec.agents_of(answers.agents), codec.values_of(answers.values)
        self.add_values(agents, values, answers.texts)

    def add_values(
        self,
        agents: NDArray[np.uint32],
        values: NDArray[np.float64],
        texts: Sequence[str] = (),
    ) -> None:
        """Take final actions of scripted players: the guess of each of these agents, and what it
        says with it; nothing when they say nothing."""
        places = self._places(agents)
        if self._final[places].any():
            new = ~self._final[places]
            places, values, texts = places[new], values[new], list(compress(texts, new))
        if texts:
            if self._said is None:
                self._said = [None] * len(self._values)
            for place, text in zip(places.tolist(), texts, strict=True):
                self._said[place] = text
        self._values[places] = values
        self._statuses[places] = _OK
        self._final[places] = True
        self._attempts[places] = 1

    def add_attempts(self, attempts: Iterable[Attempt]) -> None:
        """Take attempts of players that ask a language model."""
        if self._talk is None:
            self._talk = _Talk(len(self._values))
        for attempt in attempts:
            agent = self._place(attempt.agent)
            if not self._talk.add(attempt, agent):
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
        grouping = self._grouping
        won = np.zeros(n, np.bool_)
        payoffs = np.zeros(n)
        winners = self._places(np.asarray(settle.winners, dtype=np.uint32))
        won[winners] = True
        payoffs[winners] = settle.payoffs
        columns = RoundColumns(
            agents=self.agents,
            values=self._values,
            statuses=self._statuses,
            won=won,
            payoffs=payoffs,
            attempts=self._attempts,
            model=model,
            groups=None if grouping.codes is None else grouping.codes[self.agents],
            group_names=grouping.names,
        )
        if self._talk is not None:
            return self._talk.added_to(columns)
        return columns if self._said is None else replace(columns, text=self._said)

    def _places(self, agents: NDArray[np.uint32]) -> NDArray[np.integer[Any]]:
        """Where agents stand among the market's players."""
        if self._players is None:
            return agents
        places = np.searchsorted(self._players, agents)
        if places.size and not np.array_equal(self._players[places], agents):
            raise IndexError("an agent does not play in this market")
        return places

    def _place(self, agent: int) -> int:
        if self._players is None:
            return agent
        return int(self._places(np.array([agent], np.uint32))[0])


def _named(counts: NDArray[np.int64]) -> dict[str, int]:
    return {
        str(status): int(count) for status, count in zip(STATUSES, counts, strict=True) if count
    }


def merged(parts: Sequence[RoundColumns]) -> RoundColumns:
    """The columns of several markets of one round in one."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([part.agents for part in parts]), kind="stable")

    def column(name: str) -> Any:
        columns = [getattr(part, name) for part in parts]
        known = next((column for column in columns if column is not None), None)
        if known is None:
            return None
        # A market of scripted players beside one that asks a language model.
        whole = [
            np.zeros(len(part), known.dtype) if column is None else column
            for part, column in zip(parts, columns, strict=True)
        ]
        return np.concatenate(whole)[order]

    text: list[str | None] | None = None
    if any(part.text is not None for part in parts):
        texts = [text for part in parts for text in part.text or [None] * len(part)]
        text = [texts[i] for i in order.tolist()]
    return RoundColumns(
        model=parts[0].model,
        group_names=parts[0].group_names,
        text=text,
        **{name: column(name) for name in _COLUMNS},
    )


class _Talk:
    """What only players that ask a language model have."""

    def __init__(self, n: int) -> None:
        self.text: list[str | None] = [None] * n
        self.prompt_tokens = np.zeros(n, np.int32)
        self.completion_tokens = np.zeros(n, np.int32)
        self.latency_s = np.zeros(n)
        self._seen: set[int] = set()

    def add(self, attempt: Attempt, place: int) -> bool:
        """Count what it cost; False when it was counted before."""
        key = identity(attempt)
        if key in self._seen:
            return False
        self._seen.add(key)
        self.prompt_tokens[place] += attempt.prompt_tokens
        self.completion_tokens[place] += attempt.completion_tokens
        self.latency_s[place] += attempt.latency_s
        return True

    def added_to(self, columns: RoundColumns) -> RoundColumns:
        return replace(
            columns,
            text=self.text,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            latency_s=self.latency_s.astype(np.float32),
        )
