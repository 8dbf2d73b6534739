"""The chat completions protocol as bytes: what is sent, what comes back, what an error says.

Pure functions: nothing here reads a socket or a clock.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from agentsim.config.models import LanguageModel, LlamaCpp
from agentsim.rpc.messages import Message

MAX_TOKENS_SANE = 100_000_000
"""A count of tokens above this in one reply is taken for a broken server."""
_SEED_BITS = 31
_MESSAGE_CHARACTERS = 300
# Of a model in a listing: the same for all, or another one after each start.
_UNTELLING = ("object", "created")
_BROKEN_REASONS = frozenset({"error", "abort"})


class BadReplyError(Exception):
    """The body of a 200 is not a chat completion; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one server accepts of the optional fields; learned from what it refuses.

    Attributes:
        limit_field: the field for the most tokens of a reply.
        seed: whether `seed` is sent.
        top_p: whether `top_p` is sent, as 1, its neutral value.
        llama_cpp: whether llama.cpp's own samplers are switched off by name; its defaults for
            top_k, top_p and min_p are not neutral.
    """

    limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    seed: bool = True
    top_p: bool = True
    llama_cpp: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of a server, checked.

    Attributes:
        model: the name under which the server answered; may be empty.
        fingerprint: what the server calls its configuration; may be empty.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    request_id: str
    model: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class ServerError:
    """What a server said beside an error status.

    Attributes:
        message: one line, shortened; empty when the body said nothing readable.
        parameter: the request field it complains about, if it named one.
        code: the server's code or type, e.g. `insufficient_quota`; may be empty.
        body: the start of the raw body, to look for field names in.
    """

    message: str
    parameter: str = ""
    code: str = ""
    body: str = ""


class _Turn(Struct):
    role: str
    content: str


class _Body(Struct, omit_defaults=True):
    model: str
    messages: list[_Turn]
    temperature: float | UnsetType = UNSET
    max_tokens: int | UnsetType = UNSET
    max_completion_tokens: int | UnsetType = UNSET
    seed: int | UnsetType = UNSET
    top_p: int | UnsetType = UNSET
    top_k: int | UnsetType = UNSET
    min_p: int | UnsetType = UNSET
    response_format: dict[str, Any] | UnsetType = UNSET


class _Said(Struct):
    content: str | None = None


class _Choice(Struct):
    message: _Said
    finish_reason: str | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Whole(Struct):
    choices: list[_Choice]
    usage: _Usage | None = None
    id: str | None = None
    model: Any = None
    system_fingerprint: Any = None


class _Listed(Struct):
    id: str


class _Listing(Struct):
    data: list[_Listed]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_Whole)


def dialect_of(spec: LanguageModel) -> Dialect:
    """What a server of this backend is expected to accept."""
    return Dialect(llama_cpp=isinstance(spec, LlamaCpp))


def encode(
    spec: LanguageModel,
    dialect: Dialect,
    messages: Sequence[Message],
    *,
    schema: dict[str, Any] | None,
    seed: int,
    max_tokens: int | None = None,
) -> bytes:
    """The JSON body of one request.

    Args:
        spec: model name, temperature and `max_tokens`.
        dialect: which optional fields the server takes.
        messages: the prompt.
        schema: JSON schema the reply must follow, or None.
        seed: sampling seed; its low 31 bits are sent, which every server takes.
        max_tokens: instead of the spec's.

    Raises:
        UnicodeError: the prompt has a lone surrogate, which cannot be sent.
    """
    body = _Body(
        model=spec.name,
        messages=[_Turn(message.role, message.content) for message in messages],
        temperature=spec.temperature,
    )
    setattr(body, dialect.limit_field, max_tokens or spec.max_tokens)
    if dialect.seed:
        body.seed = seed % 2**_SEED_BITS
    if dialect.top_p:
        body.top_p = 1
    if dialect.llama_cpp:
        body.top_k = 0
        body.min_p = 0
    if schema is not None:
        body.response_format = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": schema, "strict": True},
        }
    return _encoder.encode(body)


def decode(body: bytes, *, content_type: str = "") -> Reply:
    """The reply in the body of a 200.

    Missing `usage` counts as 0 tokens; a reasoning server's `content: null` is an empty text.

    Args:
        body: as it came.
        content_type: of the response, to name it where the body is not JSON.

    Raises:
        BadReplyError: it is not JSON, has no choice, or counts that cannot be.
    """
    try:
        whole = _decoder.decode(body)
    except msgspec.ValidationError as error:
        said = server_error(body).message
        raise BadReplyError(f"not a chat completion: {said or error}") from None
    except (msgspec.DecodeError, UnicodeError):
        kind = content_type.partition(";")[0] or "no content type"
        raise BadReplyError(f"{len(body)} bytes that are not JSON ({kind})") from None
    if not whole.choices:
        raise BadReplyError("a reply without choices")
    choice = whole.choices[0]
    reason = choice.finish_reason or ""
    if reason in _BROKEN_REASONS:
        raise BadReplyError(f"the server broke the reply off (finish_reason {reason})")
    usage = whole.usage or _Usage()
    return Reply(
        text=choice.message.content or "",
        finish_reason=reason,
        prompt_tokens=_count(usage.prompt_tokens, "prompt_tokens"),
        completion_tokens=_count(usage.completion_tokens, "completion_tokens"),
        request_id=whole.id or "",
        model=whole.model if isinstance(whole.model, str) else "",
        fingerprint=whole.system_fingerprint if isinstance(whole.system_fingerprint, str) else "",
    )


def _count(tokens: int | None, name: str) -> int:
    if tokens is None:
        return 0
    if not 0 <= tokens <= MAX_TOKENS_SANE:
        raise BadReplyError(f"{name} {tokens} cannot be")
    return tokens


def server_error(body: bytes) -> ServerError:
    """What an error body says, in any of the usual shapes (`error`, `detail`, `message`, text)."""
    raw = body[:65_536].decode("utf-8", "replace")
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError):
        text = "" if raw.lstrip().startswith("<") else raw
        return ServerError(one_line(text), body=raw)
    inner = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(inner, dict):
        return ServerError(one_line(str(inner)), body=raw)
    message = inner.get("message") or inner.get("detail") or ""
    return ServerError(
        one_line(message if isinstance(message, str) else str(message)),
        parameter=str(inner.get("param") or ""),
        code=str(inner.get("code") or inner.get("type") or ""),
        body=raw,
    )


def fall_back(dialect: Dialect, error: ServerError) -> Dialect | None:
    """The dialect to try after a 400 that names an optional field; None when it names none.

    Only what leaves the sampled distribution as it is is given up: never the temperature. An
    error about the context names `max_tokens` too, and no other field would mend it.
    """
    if "context" in error.body:
        return None
    for field, other in (
        ("seed", replace(dialect, seed=False)),
        ("top_p", replace(dialect, top_p=False)),
        (dialect.limit_field, replace(dialect, limit_field=_other_limit(dialect))),
    ):
        if other != dialect and (
            error.parameter == field or re.search(rf"\b{field}\b", error.body) is not None
        ):
            return other
    return None


def _other_limit(dialect: Dialect) -> Literal["max_tokens", "max_completion_tokens"]:
    return "max_completion_tokens" if dialect.limit_field == "max_tokens" else "max_tokens"


def one_line(text: str) -> str:
    """The text on one line without control characters, shortened to some 300 characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(line) > _MESSAGE_CHARACTERS:
        line = line[: _MESSAGE_CHARACTERS - 1] + "…"
    return line


def model_facts(body: bytes, name: str) -> dict[str, str | float]:
    """What a `/models` reply says of a model beside its name: texts and numbers, also those of its
    `meta`, but not the times at which it was asked; nothing when it does not list the model, or
    lists several and none of that name.
    """
    try:
        data = msgspec.json.decode(body)["data"]
        listed = [entry for entry in data if isinstance(entry, dict)]
    except (msgspec.DecodeError, UnicodeError, KeyError, TypeError):
        return {}
    named = [entry for entry in listed if entry.get("id") == name] or listed
    if len(named) != 1:
        return {}
    meta = named[0].get("meta")
    facts = {**(meta if isinstance(meta, dict) else {}), **named[0]}
    return {
        one_line(key): one_line(value) if isinstance(value, str) else value
        for key, value in facts.items()
        if isinstance(value, str | int | float) and key not in _UNTELLING
    }


def model_names(body: bytes) -> list[str]:
    """The ids that a `/models` reply lists; none when it is not such a reply."""
    try:
        return [model.id for model in msgspec.json.decode(body, type=_Listing).data]
    except (msgspec.DecodeError, UnicodeError):
        return []
