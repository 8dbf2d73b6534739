"""All calls of a node to its language model go through an `EndpointPool`."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentsim.config.models import LanguageModel
from agentsim.errors import ModelError
from agentsim.models import endpoint_probe as probe
from agentsim.models.endpoint import Endpoint, Outcome
from agentsim.models.limits import RetryPolicy, TokenRate, Verdict, jitter_of, mix
from agentsim.rpc.messages import Completion, Request

_NOBODY = Outcome(Verdict.FAILED, error="no model endpoint is in working order")


@dataclass(frozen=True, slots=True)
class EndpointEvent:
    """Something about an endpoint that a log should keep.

    Attributes:
        kind: `left`: it failed and is given nothing for a while; `back`: it answers again;
            `remark`: for the user to see.
        endpoint: its base URL.
        message: one line, without secrets.
    """

    kind: Literal["left", "back", "remark"]
    endpoint: str
    message: str


@dataclass(frozen=True, slots=True)
class EndpointStats:
    """What a pool is doing.

    Attributes:
        in_flight: requests at the servers now.
        waiting: requests that wait for a place or for their next try.
        done: completions with a reply, so far.
        failed: completions without one.
        retries: HTTP requests beyond the first of each completion.
        prompt_tokens, completion_tokens: of all replies, as the servers counted them.
        tokens_per_s: completion tokens a second over the last 10 s.
        quiet_s: since the last completion, or since there are requests again; 0 without any.
        limit: requests that may be in flight now, over the endpoints in use.
        endpoints: how many are in ordinary use.
    """

    in_flight: int
    waiting: int
    done: int
    failed: int
    retries: int
    prompt_tokens: int
    completion_tokens: int
    tokens_per_s: float
    quiet_s: float
    limit: int
    endpoints: int


@dataclass(slots=True)
class _Progress:
    """One request on its way."""

    request: Request
    order: int
    home: int
    outcome: Outcome = _NOBODY
    endpoint: str = ""
    http_requests: int = 0
    began: float | None = None
    queued_s: float = 0.0


class EndpointPool:
    """Asks language models, with limits, retries and affinity; holds no more state than counts.

    Args:
        spec: the model of the scenario.
        base_urls: servers of that model, at least one; each up to and including `/v1`.
        api_key: sent to all of them as a bearer token; None sends none.
        concurrency: most requests in flight at each server; the limit adapts below it.
        on_event: called with what a log should keep.
        policy: pauses and bounds.

    Raises:
        ModelError: an address or the key cannot be used as given.
    """

    def __init__(
        self,
        spec: LanguageModel,
        base_urls: Sequence[str],
        *,
        api_key: str | None = None,
        concurrency: int,
        on_event: Callable[[EndpointEvent], None] = lambda event: None,
        policy: RetryPolicy | None = None,
    ) -> None:
        if not base_urls:
            raise ModelError(f"model {spec.name} has no endpoint")
        self.structured = False
        """Whether every server enforces JSON schemas; known after `start`."""
        self._spec = spec
        self._policy = policy or RetryPolicy()
        self._endpoints = [
            Endpoint(
                spec, url, api_key=api_key, concurrency=max(1, concurrency), policy=self._policy
            )
            for url in base_urls
        ]
        self._on_event = on_event
        self._order = itertools.count()
        self._closing: asyncio.Event | None = None
        self._pausing = self._open = 0
        self._quiet_from = 0.0
        self._done = self._failed = self._retries = 0
        self._prompt_tokens = self._completion_tokens = 0
        self._rate = TokenRate()

    async def start(self) -> None:
        """Connects and finds out what the servers can do.

        Raises:
            ModelError: a server refuses the key, the model or the settings, or none can be
                reached. The pool is closed then.
        """
        self._closing = asyncio.Event()
        self._clock = asyncio.get_running_loop().time
        for endpoint in self._endpoints:
            endpoint.open()
        probes = [asyncio.create_task(self._probe(endpoint)) for endpoint in self._endpoints]
        try:
            found = await asyncio.gather(*probes)
            reached = [enforced for enforced in found if isinstance(enforced, bool)]
            if not reached:
                raise ModelError(str(found[0]))
        except BaseException:
            for task in probes:
                task.cancel()
            await asyncio.gather(*probes, return_exceptions=True)
            await self.close()
            raise
        self.structured = all(reached)
        if any(reached) and not self.structured:
            self._tell(self._endpoints[0], "remark", "only some servers enforce JSON schemas")

    async def _probe(self, endpoint: Endpoint) -> bool | str:
        """Whether it enforces schemas; or why it cannot be reached."""
        try:
            remark = await probe.check(endpoint, self._policy)
        except probe.UnreachableError as error:
            endpoint.gate.health.leave(self._clock())
            self._tell(endpoint, "left", str(error))
            return str(error)
        if remark:
            self._tell(endpoint, "remark", remark)
        return await probe.enforces_schema(endpoint, self._policy)

    @property
    def about(self) -> dict[str, Any]:
        """What the servers say of the model and accept of requests, after `start`; equal ones once.

        answers_as, fingerprint: of a first reply · listed: by `/models` · seed: whether it is sent.
        """
        facts = [
            {
                "answers_as": endpoint.answers,
                "fingerprint": endpoint.fingerprint,
                "listed": endpoint.listed,
                "seed": endpoint.dialect.seed,
            }
            for endpoint in self._endpoints
        ]
        first = {key: value for key, value in facts[0].items() if value not in ("", {})}
        return first if all(each == facts[0] for each in facts) else {"servers": facts}

    async def complete(self, request: Request) -> Completion:
        """Asks until there is a reply or the tries are used up.

        Returns:
            The reply; or, with finish_reason `error`, why there is none. `tries` is 0 when no
            HTTP request was sent.

        Raises:
            asyncio.CancelledError: the caller was cancelled; its place is free again.
        """
        if not self._open:
            self._quiet_from = self._clock()
        self._open += 1
        try:
            return await self._complete(request)
        finally:
            self._open -= 1
            self._quiet_from = self._clock()

    async def _complete(self, request: Request) -> Completion:
        progress = _Progress(request, next(self._order), mix(request.session, request.agent))
        for turn in range(1, self._spec.tries + 1):
            waited_from = self._clock()
            entered = await self._enter(progress)
            if progress.began is not None:
                progress.queued_s += self._clock() - waited_from
            if entered is not None:
                await self._try(progress, *entered)
                if progress.outcome.reply is not None or not progress.outcome.again:
                    break
            if turn < self._spec.tries:
                await self._pause(progress, turn, entered is None)
        return self._completion(progress)

    async def _enter(self, progress: _Progress) -> tuple[Endpoint, int] | None:
        """A place at an endpoint; None when none is in working order."""
        for _ in range(2 * len(self._endpoints)):
            endpoint = self._route(progress.home)
            if endpoint is None:
                return None
            ticket = await endpoint.gate.enter(progress.order)
            if ticket is not None:
                return endpoint, ticket
        return None

    def _route(self, home: int) -> Endpoint | None:
        """The agent's own endpoint while that works; else another, the same one each time."""
        own = self._endpoints[home % len(self._endpoints)]
        now = self._clock()
        health = own.gate.health
        if health.trusted or health.capacity(now) > 0:
            return own
        others = [e for e in self._endpoints if e.gate.health.trusted]
        if not others:
            others = [e for e in self._endpoints if e.gate.health.usable(now)]
        return others[mix(home) % len(others)] if others else None

    async def _try(self, progress: _Progress, endpoint: Endpoint, ticket: int) -> None:
        request = progress.request
        if progress.began is None:
            progress.began = self._clock()
        try:
            outcome, sent = await endpoint.complete(
                request.messages, schema=request.schema, seed=request.seed
            )
        except BaseException:
            endpoint.gate.forget()
            raise
        health = endpoint.gate.health
        was_trusted = health.trusted
        jitter = jitter_of(request.seed, progress.http_requests)
        endpoint.gate.leave(ticket, outcome.verdict, pause_s=outcome.pause_s, jitter=jitter)
        if was_trusted != health.trusted:
            if health.trusted:
                self._tell(endpoint, "back", "answers again")
            else:
                self._tell(endpoint, "left", f"failed too often in a row: {outcome.error}")
        progress.outcome = outcome
        progress.endpoint = endpoint.url
        progress.http_requests += sent

    async def _pause(self, progress: _Progress, turn: int, nobody: bool) -> None:
        """Waits before the next try. After an overload the endpoint's gate makes it wait."""
        outcome = progress.outcome
        if outcome.verdict is Verdict.OVERLOADED and not nobody:
            return
        pause_s = self._policy.pause_s(turn, jitter_of(progress.request.seed, turn))
        if outcome.pause_s is not None and not nobody:
            pause_s = min(outcome.pause_s, self._policy.longest_pause_s)
        assert self._closing is not None
        self._pausing += 1
        try:
            async with asyncio.timeout(pause_s):
                await self._closing.wait()
        except TimeoutError:
            pass
        finally:
            self._pausing -= 1

    def _completion(self, progress: _Progress) -> Completion:
        request, outcome, reply = progress.request, progress.outcome, progress.outcome.reply
        now = self._clock()
        began = now if progress.began is None else progress.began
        self._retries += max(0, progress.http_requests - 1)
        if reply is None:
            self._failed += 1
        else:
            self._done += 1
            self._prompt_tokens += reply.prompt_tokens
            self._completion_tokens += reply.completion_tokens
            self._rate.add(reply.completion_tokens, now)
        return Completion(
            session=request.session,
            round=request.round,
            agent=request.agent,
            step=request.step,
            attempt=request.attempt,
            text="" if reply is None else reply.text,
            finish_reason="error" if reply is None else reply.finish_reason,
            error=outcome.error,
            prompt_tokens=0 if reply is None else reply.prompt_tokens,
            completion_tokens=0 if reply is None else reply.completion_tokens,
            latency_s=now - began - progress.queued_s,
            tries=progress.http_requests,
            endpoint=progress.endpoint,
            request_id="" if reply is None else reply.request_id,
        )

    def stats(self) -> EndpointStats:
        """Counts up to now."""
        gates = [e.gate for e in self._endpoints] if self._closing is not None else []
        trusted = [gate.health for gate in gates if gate.health.trusted]
        return EndpointStats(
            in_flight=sum(gate.health.in_flight for gate in gates),
            waiting=sum(gate.waiting for gate in gates) + self._pausing,
            done=self._done,
            failed=self._failed,
            retries=self._retries,
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
            tokens_per_s=self._rate.per_s(self._clock()) if gates else 0.0,
            quiet_s=self._clock() - self._quiet_from if self._open else 0.0,
            limit=sum(int(health.limit) for health in trusted),
            endpoints=len(trusted),
        )

    async def close(self) -> None:
        """Breaks off what is in flight; requests that wait come back as failed."""
        if self._closing is None or self._closing.is_set():
            return
        self._closing.set()
        await asyncio.gather(*(endpoint.close() for endpoint in self._endpoints))

    def _tell(
        self, endpoint: Endpoint, kind: Literal["left", "back", "remark"], message: str
    ) -> None:
        self._on_event(EndpointEvent(kind, endpoint.url, message))
