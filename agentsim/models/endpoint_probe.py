"""What is found out about an endpoint before the first request: does it answer, what can it do."""

from __future__ import annotations

import asyncio
from typing import Any

from agentsim.errors import ModelError
from agentsim.models.endpoint import Endpoint, Outcome
from agentsim.models.limits import RetryPolicy, Verdict, jitter_of
from agentsim.models.structured import MIN_MAX_TOKENS, PROBES, Sign, conclude
from agentsim.rpc.messages import Message

_HELLO = [Message("user", "Say ok.")]
_HELLO_TOKENS = 16
_LISTED = 5
_LISTING_TIMEOUT_S = 10.0
# Long enough for a server that loads the model on the first request.
_TIMEOUT_S = 60.0

_NEXT_STEP = {
    400: "look at model.name, model.temperature and model.max_tokens in the scenario",
    401: "set model.api_key_env to the environment variable that holds a valid key",
    403: "use a key that may use this model",
    404: "look at model.name and model.base_url in the scenario",
    429: "raise the quota, or wait and start again",
    422: "look at model.temperature and model.max_tokens in the scenario",
}
_OTHER_STEP = "check that the server runs and that model.base_url is right, then start again"


class UnreachableError(Exception):
    """The endpoint gave no usable answer; another one might. The message is whole."""


async def check(endpoint: Endpoint, policy: RetryPolicy) -> str:
    """Asks the endpoint for a few tokens, with bounded tries.

    Returns:
        A remark that the user should see, or an empty string.

    Raises:
        ModelError: it answers, and refuses what the scenario asks for.
        UnreachableError: it cannot be reached, or fails again and again.
    """
    status, names = await _listing(endpoint)
    few = min(_HELLO_TOKENS, endpoint.spec.max_tokens)
    outcome = await _persist(endpoint, policy, few)
    if outcome.status == 400 and few < endpoint.spec.max_tokens:
        # Reasoning models may refuse a limit that leaves no room for an answer.
        outcome = await _persist(endpoint, policy, endpoint.spec.max_tokens)
    if outcome.reply is None:
        line = _line(endpoint, outcome, names)
        raise UnreachableError(line) if outcome.again else ModelError(line)
    endpoint.answers = endpoint.clean(outcome.reply.model)
    endpoint.fingerprint = endpoint.clean(outcome.reply.fingerprint)
    if status == 200 and names and endpoint.spec.name not in names and not _embedded(endpoint):
        return (
            f"{endpoint.url} answers as model {endpoint.spec.name}, but lists only "
            f"{_some(names)}: it may ignore the name"
        )
    return ""


async def enforces_schema(endpoint: Endpoint, policy: RetryPolicy) -> bool:
    """Whether the endpoint enforces JSON schemas; what stays unclear counts as no."""
    signs: list[Sign] = []
    for number, probe in enumerate(PROBES):
        # A reasoning model needs room before its answer: later probes give all there is.
        room = max(MIN_MAX_TOKENS, endpoint.spec.max_tokens if number else 0)
        outcome = await _ask(endpoint, probe.messages, probe.schema, room)
        if outcome.reply is not None:
            signs.append(probe.judge(outcome.reply.text, outcome.reply.finish_reason))
        elif outcome.again:
            await asyncio.sleep(_pause_s(policy, number + 1, outcome))
        else:
            signs.append(Sign.IGNORED)
        if (found := conclude(signs)) is not None:
            return found
    return False


async def _listing(endpoint: Endpoint) -> tuple[int, list[str]]:
    try:
        async with asyncio.timeout(min(_LISTING_TIMEOUT_S, endpoint.spec.timeout_s)):
            return await endpoint.models()
    except TimeoutError:
        return 0, []


async def _persist(endpoint: Endpoint, policy: RetryPolicy, max_tokens: int) -> Outcome:
    outcome = await _ask(endpoint, _HELLO, None, max_tokens)
    for tries in range(1, endpoint.spec.tries):
        if outcome.reply is not None or not outcome.again:
            break
        await asyncio.sleep(_pause_s(policy, tries, outcome))
        outcome = await _ask(endpoint, _HELLO, None, max_tokens)
    return outcome


async def _ask(
    endpoint: Endpoint, messages: list[Message], schema: dict[str, Any] | None, max_tokens: int
) -> Outcome:
    timeout_s = min(_TIMEOUT_S, endpoint.spec.timeout_s)
    try:
        async with asyncio.timeout(timeout_s):
            outcome, _ = await endpoint.complete(
                messages, schema=schema, seed=0, max_tokens=max_tokens
            )
            return outcome
    except TimeoutError:
        return Outcome(Verdict.FAILED, error=f"no reply within {timeout_s:g} s")


def _pause_s(policy: RetryPolicy, tries: int, outcome: Outcome) -> float:
    if outcome.pause_s is not None:
        return min(outcome.pause_s, policy.longest_pause_s)
    return policy.pause_s(tries, jitter_of(tries))


def _line(endpoint: Endpoint, outcome: Outcome, names: list[str]) -> str:
    step = _NEXT_STEP.get(outcome.status, _OTHER_STEP)
    if outcome.status == 404 and names:
        step = f"the server lists {_some(names)}: set model.name to one of them"
    return (
        f"model {endpoint.spec.name} at {endpoint.url} cannot be used: "
        f"{outcome.error.rstrip('.')}; {step}"
    )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _embedded(endpoint: Endpoint) -> bool:
    return endpoint.spec.backend == "llama_cpp"
