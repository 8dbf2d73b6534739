"""Bytes of the chat completions protocol."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentsim.config.models import LlamaCpp, OpenAI
from agentsim.models import client
from agentsim.models.client import BadReplyError, Dialect, ServerError
from agentsim.rpc.messages import Message

OPENAI = OpenAI(backend="openai", name="m", temperature=0.7, max_tokens=50)
PROMPT = [Message("system", "a"), Message("user", 'b "ü"')]


def sent(spec=OPENAI, dialect=None, **fields):
    dialect = dialect or client.dialect_of(spec)
    fields = {"schema": None, "seed": 5} | fields
    return json.loads(client.encode(spec, dialect, PROMPT, **fields))


def test_openai_gets_standard_fields_alone():
    assert sent() == {
        "model": "m",
        "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": 'b "ü"'}],
        "temperature": 0.7,
        "max_tokens": 50,
        "seed": 5,
        "top_p": 1,
    }


def test_llama_cpp_gets_neutral_samplers():
    body = sent(LlamaCpp(backend="llama_cpp"))
    assert (body["top_k"], body["top_p"], body["min_p"]) == (0, 1, 0)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_temperature_is_sent_whatever_it_is(temperature):
    spec = OPENAI.model_copy(update={"temperature": temperature})
    assert sent(spec)["temperature"] == temperature


def test_seed_is_sent_in_31_bits():
    assert sent(seed=2**63 + 17)["seed"] == 17
    assert sent(seed=0)["seed"] == 0


def test_schema_is_sent_strict():
    schema = {"type": "object", "properties": {}}
    assert sent(schema=schema)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": schema, "strict": True},
    }


def test_dialect_decides_the_optional_fields():
    body = sent(dialect=Dialect(limit_field="max_completion_tokens", seed=False, top_p=False))
    assert set(body) == {"model", "messages", "temperature", "max_completion_tokens"}
    assert body["max_completion_tokens"] == 50


def test_a_lone_surrogate_cannot_be_sent():
    with pytest.raises(UnicodeError):
        client.encode(OPENAI, Dialect(), [Message("user", "\ud800")], schema=None, seed=1)


def whole(**fields):
    message = fields.pop("message", {"role": "assistant", "content": "hi"})
    data = {
        "id": "x",
        "choices": [{"message": message, "finish_reason": fields.pop("finish_reason", "stop")}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
        "timings": {"more": 1},
    }
    return json.dumps(data | fields).encode()


def test_a_reply_is_read():
    assert client.decode(whole()) == client.Reply("hi", "stop", 3, 2, "x")


def test_null_content_is_an_empty_text():
    reply = client.decode(whole(message={"content": None, "reasoning_content": "hm 42"}))
    assert reply.text == ""


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}])
def test_tokens_are_zero_when_the_server_does_not_count(usage):
    reply = client.decode(whole(usage=usage))
    assert (reply.prompt_tokens, reply.completion_tokens) == (0, 0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"nope",
        whole()[:-20],
        whole().replace(b"hi", b"\xff\xfe"),
        whole().replace(b"hi", b"\\ud800"),
        whole(choices=[]),
        whole(choices=None),
        whole(choices=[{}]),
        whole(choices=[{"message": None}]),
        whole(message={"content": 42}),
        whole(message={"content": ["42"]}),
        whole(usage={"completion_tokens": -1}),
        whole(usage={"completion_tokens": 2.5}),
        whole(usage={"prompt_tokens": 10**12}),
        whole(usage={"prompt_tokens": "7"}),
        whole(finish_reason="error"),
        whole(finish_reason="abort"),
        whole(finish_reason=1),
        b'{"error": {"message": "boom"}}',
    ],
)
def test_what_is_no_chat_completion_is_refused(body):
    with pytest.raises(BadReplyError):
        client.decode(body)


def test_refusal_names_what_the_server_says():
    with pytest.raises(BadReplyError, match="out of credits"):
        client.decode(b'{"error": {"message": "out of credits", "code": 402}}')
    with pytest.raises(BadReplyError, match=r"text/html\)"):
        client.decode(b"<html>", content_type="text/html; charset=utf-8")


@pytest.mark.parametrize(
    ("body", "message", "parameter", "code"),
    [
        (b'{"error":{"message":"bad\\nkey","param":"seed","code":"c"}}', "bad key", "seed", "c"),
        (b'{"error":{"message":"m","type":"t","code":null}}', "m", "", "t"),
        (b'{"object":"error","message":"too long","code":400}', "too long", "", "400"),
        (b'{"detail":"Not Found"}', "Not Found", "", ""),
        (b'{"error":"plain"}', "plain", "", ""),
        (b"upstream timed out", "upstream timed out", "", ""),
        (b"<html>502</html>", "", "", ""),
        (b"", "", "", ""),
        (b"\xff\xfe", "\ufffd\ufffd", "", ""),
    ],
)
def test_error_bodies_of_all_shapes_are_read(body, message, parameter, code):
    error = client.server_error(body)
    assert (error.message, error.parameter, error.code) == (message, parameter, code)


def test_error_messages_are_shortened():
    assert len(client.server_error(b"x" * 10_000).message) == 300


def refusal(text, parameter=""):
    return ServerError(text, parameter, body=text)


@pytest.mark.parametrize(
    ("error", "change"),
    [
        (refusal("Unsupported", "seed"), {"seed": False}),
        (refusal("Unrecognized request argument supplied: seed"), {"seed": False}),
        (refusal("`temperature` and `top_p` cannot both be specified"), {"top_p": False}),
        (
            refusal("Use 'max_completion_tokens' instead.", "max_tokens"),
            {"limit_field": "max_completion_tokens"},
        ),
    ],
)
def test_a_refused_field_is_given_up(error, change):
    assert client.fall_back(Dialect(), error) == replace(Dialect(), **change)


@pytest.mark.parametrize(
    "error",
    [
        refusal("Unsupported value for temperature", "temperature"),
        refusal("maximum context length is 8; reduce max_tokens"),
        refusal("seeds of doubt"),
    ],
)
def test_nothing_is_given_up_for_other_errors(error):
    assert client.fall_back(Dialect(), error) is None


def test_a_field_is_given_up_once():
    assert client.fall_back(Dialect(seed=False), refusal("x", "seed")) is None


def test_model_names_are_read():
    assert client.model_names(b'{"data": [{"id": "a"}, {"id": "b"}]}') == ["a", "b"]
    assert client.model_names(b"<html>") == []
    assert client.model_names(b'{"data": null}') == []


def test_under_which_name_a_server_answered():
    reply = client.decode(whole(model="gpt-x-2026", system_fingerprint="fp_1"))
    assert (reply.model, reply.fingerprint) == ("gpt-x-2026", "fp_1")
    reply = client.decode(whole(model=7, system_fingerprint=None))
    assert (reply.model, reply.fingerprint) == ("", "")


def listing(*entries):
    return json.dumps({"object": "list", "data": entries}).encode()


@pytest.mark.parametrize(
    ("body", "facts"),
    [
        (
            listing(
                {
                    "id": "a",
                    "object": "model",
                    "created": 5,
                    "owned_by": "vllm",
                    "max_model_len": 9,
                },
                {"id": "b"},
            ),
            {"id": "a", "owned_by": "vllm", "max_model_len": 9},
        ),
        (listing({"id": "x.gguf", "meta": {"n_params": 3}}), {"id": "x.gguf", "n_params": 3}),
        (listing({"id": "b"}, {"id": "c"}), {}),
        (listing(3, None, "a"), {}),
        (listing({"id": "a", "root": "x\ny", "permission": [1]}), {"id": "a", "root": "x y"}),
        (b"nope", {}),
        (b"[]", {}),
        (b'{"data": null}', {}),
    ],
)
def test_what_a_listing_says_of_a_model(body, facts):
    assert client.model_facts(body, "a") == facts
