"""The handle of a language model that agents hold, and the replies that it gives."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agentsim.actors.placeholder import WouldBlock
from agentsim.chat.persona import Persona
from agentsim.errors import UserError
from agentsim.replies import Reading, read
from agentsim.rpc.messages import PLAYERS, Message

MODULES = ("agentsim.chat.model", "agentsim.chat.persona", "agentsim.replies.status")
"""Modules whose objects travel in every workflow."""

Prompt = str | Sequence[Mapping[str, str]]
"""A question, or chat messages such as `{"role": "system", "content": "…"}`."""

_ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said.

    Attributes:
        text: as it came.
        finish_reason: what the server said: `stop`, or `length` for a reply that was cut.
        prompt_tokens, completion_tokens: as the server counted them, 0 when it did not say.
        latency_s: from the first try to the end.
        format: `json` where the server enforced a schema, else `text`.
    """

    text: str
    finish_reason: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_s: float = 0.0
    format: str = "text"

    def number(self, low: float, high: float, *, target: str = "") -> Reading:
        """Read the reply as a number, by the rules of `agentsim.replies`: nothing is guessed.

        Args:
            low, high: smallest and largest number that may be chosen.
            target: a rule such as `2/3 * mean`, whose factor alone is no answer.

        Returns:
            A status, the value where the status is ok, and why where it is not.
        """
        return read(
            self.text,
            finish_reason=self.finish_reason,
            low=low,
            high=high,
            target=target,
            format=self.format,
        )


class PendingReply:
    """A reply that comes later. Await it in agents; `result()` waits in the workflow's thread."""

    __slots__ = ("_future",)

    def __init__(self, future: Future[Reply]) -> None:
        self._future = future

    @property
    def done(self) -> bool:
        """Whether the reply is there, or the call has failed."""
        return self._future.done()

    def result(self, timeout_s: float | None = None) -> Reply:
        """The reply, waiting for it.

        Raises:
            TimeoutError: it is not there in time.
            ModelError: the model gave none, for good.
            WouldBlock: this is a worker's loop.
        """
        if not self._future.done() and _on_a_loop():
            raise WouldBlock
        try:
            return self._future.result(timeout_s)
        except FutureTimeout:
            if self._future.done():
                raise
            raise TimeoutError(f"no reply within {timeout_s:g} s") from None

    def __await__(self) -> Generator[Any, None, Reply]:
        return asyncio.wrap_future(self._future).__await__()


@dataclass(frozen=True, slots=True)
class Model:
    """A language model of the run. Give it to agents' constructors; `chat` asks it.

    Sampling seeds are a function of the scenario's seed, the session, the agent that the handle is
    bound to, and how often it has asked: `model.of(persona)` binds it. A handle that is bound to
    nobody is seeded by the worker, and so depends on where its agent lives.

    Attributes:
        session: from 1.
        seed: the scenario's.
        agent: number of the agent that it is bound to; None: nobody.
        structured: whether the model's servers enforce JSON schemas.
        name: which of the run's models it is.
    """

    session: int
    seed: int
    agent: int | None = None
    structured: bool = False
    name: str = PLAYERS

    def of(self, who: Persona | int) -> Model:
        """The same model, bound to an agent: its calls are seeded and recorded as that agent's."""
        return replace(self, agent=who if isinstance(who, int) else who.agent)

    def chat(self, prompt: Prompt, *, schema: Mapping[str, Any] | None = None) -> PendingReply:
        """Ask the model.

        Args:
            prompt: a question, or chat messages.
            schema: JSON schema of the reply. Where the server does not enforce schemas it is left
                out; `Reply.format` says which it was.

        Returns:
            The reply to come: `await` it in an agent, or `.result()` in the workflow's thread.

        Raises:
            TypeError: the prompt is none.
            UserError: no run is going on here.
        """
        asked = dict(schema) if schema is not None and self.structured else None
        return PendingReply(_client().submit(self, _messages(prompt), asked))


class Asks(Protocol):
    """Carries calls out for one process."""

    def submit(
        self, model: Model, messages: list[Message], schema: dict[str, Any] | None
    ) -> Future[Reply]:
        """Begin a call, from any thread."""


CURRENT: ContextVar[Asks | None] = ContextVar("agentsim_chat", default=None)
"""Who carries out the calls of the code that runs now; agents' code inherits it."""


def _client() -> Asks:
    client = CURRENT.get()
    if client is None:
        raise UserError(
            "a model can be asked inside agents and in the workflow's thread; a thread of your own "
            "needs their context: contextvars.copy_context().run(…)"
        )
    return client


def _messages(prompt: Prompt) -> list[Message]:
    if isinstance(prompt, str):
        return [Message("user", prompt)]
    messages = []
    for item in prompt:
        if not isinstance(item, Mapping) or set(item) != {"role", "content"}:
            raise TypeError('a chat message is {"role": "user", "content": "…"}')
        if item["role"] not in _ROLES or not isinstance(item["content"], str):
            raise TypeError(f"a role is one of {', '.join(_ROLES)}, and the content is text")
        messages.append(Message(item["role"], item["content"]))
    if not messages:
        raise TypeError("the prompt has no messages")
    return messages


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
