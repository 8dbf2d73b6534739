"""The player that a language model speaks for: a pure state machine between two model calls.

`prepare(observation)` gives the first request of a round. `digest(completion)` reads the reply and
gives the record of the attempt, and another request while the reply cannot be used and attempts
are left. There is no coroutine, clock or random source in it, so a worker drives a million in
batches, and it is tested without a model.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from agentsim import draws
from agentsim.config.scenario import Last
from agentsim.draws import Stream
from agentsim.games.guess_average import prompts
from agentsim.games.guess_average.groups import Membership
from agentsim.games.guess_average.market import MarketContext
from agentsim.replies import Reading, Status, read
from agentsim.rpc.messages import Attempt, Completion, Message, Observation, Request

_SEED_BLOCK = 1024
_NOTHING = "(no valid number in this round)"


class Player:
    """One agent of one session.

    Args:
        context: what all players of the worker share.
        session: from 1.
        agent: from 0.
        persona: who the agent is; only the prompt `character` shows it.
        group: the agent's; None when there are none.
    """

    __slots__ = ("_agent", "_context", "_market", "_own", "_pending", "_persona", "_refused")

    def __init__(
        self,
        context: MarketContext,
        session: int,
        agent: int,
        persona: str | None = None,
        group: Membership | None = None,
    ) -> None:
        self._context = context
        self._market = context.market(session, group)
        self._agent = agent
        self._persona = persona if context.prompt == "character" else None
        # What memory needs of the agent's own rounds, the latest last: numbers or replies.
        self._own: list[float | str | None] = []
        self._pending: Request | None = None
        self._refused: Status | None = None

    @property
    def agent(self) -> int:
        """The agent's number, from 0."""
        return self._agent

    @property
    def group(self) -> Membership | None:
        """The agent's group; None when there are none."""
        return self._market.group

    def prepare(
        self, observation: Observation, tried: int = 0, refused: Status | None = None
    ) -> Request:
        """The first request of a round, or the one after those that were recorded before.

        Args:
            observation: what the round tells.
            tried: attempts of the round that were made already.
            refused: what was wrong with the latest of them that had a reply; None: none had.

        Raises:
            ValueError: an earlier round is missing; see `recall`.
        """
        self._market.observe(observation)
        self._refused = refused
        user = self._question(observation.round)
        messages = [self._system(observation.n), *self._turns(observation.round), user]
        if tried:
            messages = self._reminded(observation.round, messages)
        return self._request(observation.session, observation.round, tried, messages)

    def digest(self, completion: Completion) -> tuple[Attempt, Request | None]:
        """Read the reply to the request that is open.

        Returns:
            The record of the attempt, and the next request; None when the attempt is final.

        Raises:
            ValueError: the completion answers another request.
        """
        request = self._pending
        if request is None or _identity(completion) != _identity(request):
            raise ValueError(f"no open request for {_identity(completion)}")
        reading = self._read(completion)
        final = reading.status is Status.OK or request.attempt + 1 >= self._context.attempts
        attempt = self._record(request, completion, reading, final)
        if final:
            self._pending = None
            self._remember(reading.value, completion.text)
            return attempt, None
        if reading.status is not Status.FAILED:
            self._refused = reading.status
        return attempt, self._again(request)

    def recall(self, observation: Observation, value: float | None, text: str) -> None:
        """Take in a round that was played before, in order, to rebuild a player.

        `observe` alone is enough where memory holds nothing.

        Args:
            observation: what the round told.
            value: the agent's number, None when its final action was not valid.
            text: the reply that it was read from.

        Raises:
            ValueError: an earlier round is missing.
        """
        self._market.observe(observation)
        self._remember(value, text)

    def observe(self, observation: Observation) -> None:
        """Take in what a round told, for everybody in the player's group.

        Raises:
            ValueError: an earlier round is missing.
        """
        self._market.observe(observation)

    def _remember(self, value: float | None, text: str) -> None:
        match self._context.memory:
            case "none":
                return
            case "numbers":
                self._own.append(value)
            case "transcript":
                self._own.append(None if value is None else text)
            case Last(last=rounds):
                self._own.append(None if value is None else text)
                del self._own[:-rounds]

    def _system(self, n: int) -> Message:
        context, market = self._context, self._market
        if context.prompt == "character":
            text = prompts.system(context.spec, n, context.prompt, self._persona, market.group)
            return Message("system", text)
        if market.system is None:
            text = prompts.system(context.spec, n, context.prompt, None, market.group)
            market.system = Message("system", text)
        return market.system

    def _turns(self, round: int) -> list[Message]:
        """Earlier rounds as chat turns."""
        if self._context.memory in ("none", "numbers"):
            return []
        first = round - len(self._own)
        turns = []
        for earlier, text in enumerate(self._own, first):
            reply = text if isinstance(text, str) else _NOTHING
            turns += [self._market.questions[earlier - 1], Message("assistant", reply)]
        return turns

    def _question(self, round: int) -> Message:
        if self._context.memory != "numbers" or not self._own:
            return self._market.questions[round - 1]
        own = [value if isinstance(value, float) else None for value in self._own]
        spec = self._context.spec
        before = prompts.table(spec, self._market.announced[1:round], own)
        return self._market.ask(prompts.question(spec, round, {}, before))

    def _again(self, request: Request) -> Request:
        """The same prompt, with a reminder of what was wrong; the old reply is not shown."""
        messages = self._reminded(request.round, request.messages)
        return self._request(request.session, request.round, request.attempt + 1, messages)

    def _reminded(self, round: int, messages: list[Message]) -> list[Message]:
        """A round's prompt with a reminder of what was wrong with the latest reply."""
        if self._refused is None:
            return messages
        reminder = prompts.reminder(self._context.spec, self._refused)
        return [*messages[:-1], self._market.ask(self._question(round).content, reminder)]

    def _request(self, session: int, round: int, attempt: int, messages: list[Message]) -> Request:
        block, place = divmod(self._agent, _SEED_BLOCK)
        seeds = _seeds(self._context.seed, session, round, attempt, block)
        request = Request(
            session=session,
            round=round,
            agent=self._agent,
            step=0,
            attempt=attempt,
            messages=messages,
            schema=self._market.schema,
            seed=seeds[place],
        )
        self._pending = request
        return request

    def _read(self, completion: Completion) -> Reading:
        if completion.error:
            return Reading(Status.FAILED, None, completion.error)
        low, high = self._context.spec.range
        return read(
            completion.text,
            finish_reason=completion.finish_reason,
            low=low,
            high=high,
            target=self._context.spec.target,
            format=self._context.format,
        )

    def _record(
        self, request: Request, completion: Completion, reading: Reading, final: bool
    ) -> Attempt:
        return Attempt(
            session=request.session,
            round=request.round,
            agent=request.agent,
            step=request.step,
            attempt=request.attempt,
            messages=request.messages,
            format=self._context.format,
            seed=request.seed,
            text=completion.text,
            finish_reason=completion.finish_reason,
            status=str(reading.status),
            value=reading.value,
            reason="" if reading.status is Status.OK else reading.reason,
            final=final,
            error=completion.error,
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            latency_s=completion.latency_s,
            tries=completion.tries,
            endpoint=completion.endpoint,
            request_id=completion.request_id,
            choice=completion.choice,
            worker=self._context.worker,
        )


def _identity(message: Request | Completion) -> tuple[int, int, int, int, int]:
    return (message.session, message.round, message.agent, message.step, message.attempt)


@lru_cache(maxsize=256)
def _seeds(seed: int, session: int, round: int, attempt: int, block: int) -> list[int]:
    """Sampling seeds of a block of agents, 31 bits each: a column costs little more than one."""
    agents = np.arange(block * _SEED_BLOCK, (block + 1) * _SEED_BLOCK, dtype=np.uint32)
    words = draws.integers(
        Stream.MODEL_SEED, agents, seed=seed, session=session, round=round, attempt=attempt
    )
    seeds: list[int] = (words >> np.uint64(33)).tolist()
    return seeds
