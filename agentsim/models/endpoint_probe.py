"""What is found out about an endpoint before the first request: does it answer, what can it do."""

from __future__ import annotations

import asyncio

from agentsim.errors import ModelError
from agentsim.models.endpoint import Endpoint, Outcome
from agentsim.models.limits import RetryPolicy, jitter_of
from agentsim.models.structured import MIN_MAX_TOKENS, PROBES, Sign, conclude
from agentsim.rpc.messages import Message

_HELLO = [Message("user", "Say ok.")]
_HELLO_TOKENS = 16
_LISTED = 5

_NEXT_STEP = {
    400: "look at model.name, model.temperature and model.max_tokens in the scenario",
    401: "set model.api_key_env to the environment variable that holds a valid key",
    403: "use a key that may use this model",
    404: "look at model.name and model.base_url in the scenario",
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
    status, names = await endpoint.models()
    few = min(_HELLO_TOKENS, endpoint.spec.max_tokens)
    outcome = await _persist(endpoint, policy, few)
    if outcome.status == 400 and few < endpoint.spec.max_tokens:
        # Reasoning models may refuse a limit that leaves no room for an answer.
        outcome = await _persist(endpoint, policy, endpoint.spec.max_tokens)
    if outcome.reply is None:
        line = _line(endpoint, outcome, names)
        raise ModelError(line) if 400 <= outcome.status < 500 else UnreachableError(line)
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
        outcome, _ = await endpoint.complete(
            probe.messages, schema=probe.schema, seed=number, max_tokens=room
        )
        if outcome.reply is not None:
            signs.append(probe.judge(outcome.reply.text, outcome.reply.finish_reason))
        elif outcome.again:
            await asyncio.sleep(_pause_s(policy, number + 1, outcome))
        else:
            signs.append(Sign.IGNORED)
        if (found := conclude(signs)) is not None:
            return found
    return False


async def _persist(endpoint: Endpoint, policy: RetryPolicy, max_tokens: int) -> Outcome:
    outcome, _ = await endpoint.complete(_HELLO, schema=None, seed=0, max_tokens=max_tokens)
    for tries in range(1, endpoint.spec.tries):
        if outcome.reply is not None or not outcome.again:
            break
        await asyncio.sleep(_pause_s(policy, tries, outcome))
        outcome, _ = await endpoint.complete(_HELLO, schema=None, seed=0, max_tokens=max_tokens)
    return outcome


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
