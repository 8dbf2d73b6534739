"""What the programs say to each other: orchestrator, node and worker meet in these types alone.

Columns travel as little-endian bytes (`to_bytes`/`from_bytes` in `codec`), because a million
floats as one byte string cost nothing to encode. Texts travel as lists of strings.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

PLAYERS = "players"
PERSONAS = "personas"
"""Names of a node's models: who plays, and who writes personas."""


class Message(Struct, frozen=True, array_like=True):
    """One chat message. `role` is system, user or assistant."""

    role: str
    content: str


class Observation(Struct, frozen=True):
    """What the agents of one market, or of one group of it, are told at the start of a round.

    Attributes:
        session: from 1.
        round: from 1.
        n: players in the market, the reader counted.
        announced: what was announced after the last round, by name (mean, median, target,
            winning_guess); empty in round 1.
        group: number of the group that is told this, from 1; 0: all agents of the session, when
            there are no groups.
    """

    session: int
    round: int
    n: int
    announced: dict[str, float] = {}
    group: int = 0


class Groups(Struct, frozen=True):
    """Who is in which group, in one session. Written to the journal before its first round.

    Attributes:
        session: from 1.
        names: of the groups, in order; each has at least one agent.
        sizes: agents of each in the whole session.
        codes: uint32, the group of each agent in order of agents, as a place in `names`; of all
            agents, or of those that the message is about.
        separate: whether each group is a market of its own.
    """

    session: int
    names: list[str]
    sizes: list[int]
    codes: bytes
    separate: bool


class Request(Struct, frozen=True):
    """One question to a language model. Identified by its first five fields.

    Attributes:
        round: from 1; 0 for what is asked before the game, when personas are written.
        step: counts the questions of one round that are not repetitions, from 0.
        attempt: counts repetitions of a step, from 0.
        messages: the prompt.
        schema: JSON schema the reply must follow, where the server enforces one; else None.
        seed: sampling seed, a function of the identity and the scenario's seed.
        model: name of the node's model that is asked.
    """

    session: int
    round: int
    agent: int
    step: int
    attempt: int
    messages: list[Message]
    schema: dict[str, Any] | None
    seed: int
    model: str = PLAYERS


class Completion(Struct, frozen=True):
    """What came of one request. A request that failed for good has `error` and no text.

    Attributes:
        text: the reply, as it came.
        finish_reason: what the server said (stop, length, …); `error` when it failed.
        error: why it failed, one line, without secrets; empty when it did not.
        prompt_tokens, completion_tokens: as the server counted them, 0 when it did not say.
        latency_s: from the first try to the end, queueing at the node left out.
        tries: HTTP requests it took, from 1.
        endpoint: base URL that answered.
        request_id: the server's id of the reply, may be empty.
        choice: index among the choices of that reply.
    """

    session: int
    round: int
    agent: int
    step: int
    attempt: int
    text: str
    finish_reason: str
    error: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float = 0.0
    tries: int = 1
    endpoint: str = ""
    request_id: str = ""
    choice: int = 0


class Attempt(Struct, frozen=True):
    """One attempt of one agent, whole: asked, answered, read. It is what the journal keeps.

    Attributes:
        format: how the reply was read: `json` (the server enforced a schema) or `text`.
        status: a `replies.Status` value.
        value: the number that was read, None unless the status is ok.
        reason: why the status is not ok, in a few words; empty when it is.
        final: whether this attempt decided the agent's action of the round.
        worker: index of the worker over all hosts, from 0.
    """

    session: int
    round: int
    agent: int
    step: int
    attempt: int
    messages: list[Message]
    format: str
    seed: int
    text: str
    finish_reason: str
    status: str
    value: float | None
    reason: str
    final: bool
    error: str
    prompt_tokens: int
    completion_tokens: int
    latency_s: float
    tries: int
    endpoint: str
    request_id: str
    choice: int
    worker: int


class Answers(Struct, frozen=True, array_like=True):
    """Final actions of scripted players, as columns of one length.

    Attributes:
        agents: uint32, agent numbers in any order.
        values: float64, in the game's range.
        worker: index of the worker over all hosts.
        texts: what they say with it, in the same order; empty when they say nothing.
    """

    session: int
    round: int
    worker: int
    agents: bytes
    values: bytes
    texts: list[str] = []


class GroupOutcome(Struct, frozen=True):
    """How a round ended for one group of a market.

    Attributes:
        name: of the group.
        n: its agents.
        statuses: how many of their final actions have each status, those with none left out.
        mean, median: over its valid actions; None when there are none.
        winners: how many of its agents won.
        announced: what the next round's observation tells them.
    """

    name: str
    n: int
    statuses: dict[str, int]
    mean: float | None
    median: float | None
    winners: int
    announced: dict[str, float]


class Settle(Struct, frozen=True):
    """How one round of one market ended; written to the journal before it is announced.

    A session is one market, unless its groups are markets of their own.

    Attributes:
        n: agents of the market.
        statuses: how many final actions have each status, those with none left out.
        target: the number to be close to; None when no action was valid.
        mean, median: over valid actions, in agent order; between groups: over the groups' means.
            None when there are none.
        winning_guess: the guess of the winners that is closest to the target; between groups: the
            mean of the winning group. None if none.
        winners: agent numbers, ascending.
        payoffs: of the winners, same order.
        announced: what the next round's observation tells everybody; empty where groups are told
            their own numbers.
        wall_s: from asking to settling.
        market: which one of the session, from 0.
        markets: how many the session has.
        groups: of the market, in order; empty when there are none.
    """

    session: int
    round: int
    n: int
    statuses: dict[str, int]
    target: float | None
    mean: float | None
    median: float | None
    winning_guess: float | None
    winners: list[int]
    payoffs: list[float]
    announced: dict[str, float]
    wall_s: float
    market: int = 0
    markets: int = 1
    groups: list[GroupOutcome] = []
