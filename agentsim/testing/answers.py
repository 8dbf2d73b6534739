"""What the fake model server says: modes, and replies made up from a request. Pure."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec


class Mode(StrEnum):
    """How a request is answered."""

    OK = "ok"
    """A number from the request's seed; JSON where a schema is asked for and enforced."""
    HOLD = "hold"
    """As ok, but not before the test lets go."""
    SLOW = "slow"
    """As ok, after a delay."""
    GARBAGE = "garbage"
    """A reply without a number in it."""
    EMPTY = "empty"
    """A reply of no characters."""
    NULL_CONTENT = "null_content"
    """`content: null` beside `reasoning_content`, as reasoning servers send when they are cut."""
    TRUNCATED = "truncated"
    """Half of an ok reply, finish_reason `length`."""
    WRONG_JSON = "wrong_json"
    """JSON that is no chat completion."""
    NO_CHOICES = "no_choices"
    """A chat completion with no choices."""
    NUMBER_CONTENT = "number_content"
    """`content` is a number instead of a string."""
    NO_USAGE = "no_usage"
    """An ok reply that does not count its tokens."""
    ABSURD_USAGE = "absurd_usage"
    """An ok reply with a negative count of tokens."""
    HTML = "html"
    """A web page with status 200, as captive portals and proxies send."""
    HALF = "half"
    """The connection is closed in the middle of the body."""
    HUGE = "huge"
    """A body without end."""
    RESET = "reset"
    """The connection is reset before the answer."""
    NEVER = "never"
    """Accepted, and never answered."""
    RATE_LIMITED = "429"
    """429, with `Retry-After` if there is one."""
    BROKEN = "500"
    """500."""
    OVERLOADED = "503"
    """503."""
    UNAUTHORIZED = "unauthorized"
    """401."""
    CONTEXT = "context"
    """400: the prompt is too long."""
    MIXED = "mixed"
    """Each request draws one of the other modes that end by themselves; more than half are ok."""


_MIX = (
    Mode.RATE_LIMITED,
    Mode.BROKEN,
    Mode.OVERLOADED,
    Mode.HALF,
    Mode.RESET,
    Mode.WRONG_JSON,
    Mode.EMPTY,
    Mode.GARBAGE,
    Mode.TRUNCATED,
    Mode.NULL_CONTENT,
)
_OK_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Ask:
    """One chat request as it came in.

    Attributes:
        number: arrival, from 0, over the life of the server.
        identity: the same for requests with equal seed, messages and schema.
        earlier: how many requests of this identity came before.
        replied: how many of them got a whole, good reply.
        seed: as sent; 0 when none was.
        text: the messages' contents, one after the other.
        schema: JSON schema asked for, or None.
        body: the whole request.
        headers: lower-case names.
        target: path and query of the URL.
    """

    number: int
    identity: str
    earlier: int
    replied: int
    seed: int
    text: str
    schema: dict[str, Any] | None
    body: dict[str, Any]
    headers: Mapping[str, str]
    target: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What to answer.

    Attributes:
        mode: how.
        text: the reply's text; None makes one up from the seed.
        finish_reason: of a good reply.
        delay_s: wait before anything is sent.
        retry_after: value of that header on 429 and 503; None sends none.
    """

    mode: Mode = Mode.OK
    text: str | None = None
    finish_reason: str = "stop"
    delay_s: float = 0.0
    retry_after: str | None = None


def identity_of(body: Mapping[str, Any]) -> str:
    """Names what was asked: the same for a request that is sent again."""
    what = [body.get("seed"), body.get("messages"), body.get("response_format")]
    digest = hashlib.sha256(msgspec.json.encode(what, order="sorted")).hexdigest()
    return f"{body.get('seed')}:{digest[:16]}"


def draw_mode(ask: Ask) -> Mode:
    """The mode of one request in `mixed`: another one each time the request is sent again."""
    draw = random.Random(f"{ask.identity}/{ask.earlier}")
    return Mode.OK if draw.random() < _OK_SHARE else draw.choice(_MIX)


def made_up(ask: Ask, *, structured: bool | str) -> str:
    """A reply with a number from 0 to 100 that depends on the seed alone.

    Args:
        ask: the request.
        structured: True follows the schema, `lie` sends JSON that does not, False sends prose.
    """
    number = random.Random(ask.seed).randint(0, 10_000) / 100
    if ask.schema is None or structured is False:
        return f"I think about what the others will do. My guess is {number}."
    if structured == "lie":
        return '{"answer": "something else"}'
    return msgspec.json.encode(_instance(ask.schema, number)).decode()


def _instance(schema: Mapping[str, Any], number: float) -> Any:
    """The simplest value that a schema of the usual kind allows."""
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for option in schema.get("anyOf", ()):
        return _instance(option, number)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: _instance(part, number) for name, part in properties.items()}
    simple: dict[Any, Any] = {
        "number": number,
        "integer": round(number),
        "string": "Others will aim a little lower.",
        "boolean": True,
        "array": [],
    }
    return simple.get(kind)


def completion(ask: Ask, mode: Mode, text: str, finish_reason: str) -> bytes:
    """The body of a 200 in one of the modes that have a whole body."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    usage: dict[str, Any] | None = {
        "prompt_tokens": max(1, len(ask.text.split())),
        "completion_tokens": max(1, len(text.split())),
    }
    choices = [{"index": 0, "message": message, "finish_reason": finish_reason}]
    if mode is Mode.GARBAGE:
        message["content"] = "Ja mei, des woaß i aa ned so genau."
    elif mode is Mode.EMPTY:
        message["content"] = ""
    elif mode is Mode.NULL_CONTENT:
        message |= {"content": None, "reasoning_content": "Let me think about the others."}
        choices[0]["finish_reason"] = "length"
    elif mode is Mode.TRUNCATED:
        message["content"] = text[: len(text) // 2]
        choices[0]["finish_reason"] = "length"
    elif mode is Mode.NUMBER_CONTENT:
        message["content"] = 42
    elif mode is Mode.NO_CHOICES:
        choices = []
    elif mode is Mode.NO_USAGE:
        usage = None
    elif mode is Mode.ABSURD_USAGE:
        usage = {"prompt_tokens": 5, "completion_tokens": -7}
    elif mode is Mode.WRONG_JSON:
        return b'{"hello": ["world"]}'
    elif mode is Mode.HTML:
        return b"<!doctype html><html><title>Sign in</title><p>Please accept our terms.</html>"
    data = {
        "id": f"chatcmpl-{ask.number}",
        "object": "chat.completion",
        "model": ask.body.get("model"),
        "choices": choices,
        "usage": usage,
    }
    return msgspec.json.encode(data)


GOOD = frozenset(
    {
        *(Mode.OK, Mode.HOLD, Mode.SLOW, Mode.GARBAGE, Mode.EMPTY, Mode.NULL_CONTENT),
        *(Mode.TRUNCATED, Mode.NO_USAGE),
    }
)
"""Modes whose reply counts as a completion; what it says is another matter."""
