"""Secrets do not reach what is printed."""

from __future__ import annotations

import pytest

from agentsim.config.masking import is_secret, mask_text
from agentsim.config.parse import parse
from agentsim.config.tree import document

SECRET = "s3cr3t-value"
NAMES = """
api_key apiKey APIKEY api-key OPENAI_API_KEY api_key_env token hf_token hfToken secret key
client_secret password db.password passwd Authorization credentials
"""
OTHERS = "max_tokens tokens keys monkey tokenizer secretary keyword agents wall_s 010"


@pytest.mark.parametrize("key", NAMES.split())
def test_names_of_secrets(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize("key", OTHERS.split())
def test_other_names(key: str) -> None:
    assert not is_secret(key)


@pytest.mark.parametrize(
    "text",
    [
        f"api_key: {SECRET}",
        f"api_key: '{SECRET}' # comment",
        f"{{a: 1, token: {SECRET}, b: 2}}",
        f"a: {{password: [{SECRET}, {{x: {SECRET}}}]}}",
        f"api_key:\n  {SECRET}\n",
        f"api_key: |\n  {SECRET}\n  {SECRET}\nb: 1",
        f"api_key: >-\n  x\n\n  {SECRET}",
        f'"api_key": "{SECRET}\n  {SECRET}"',
        f"api_key:\n  - {SECRET}\n  - a: {SECRET}\nb: 1",
        f"x: &k {SECRET}\napi_key: *k",
        f"a: 1 # api_key: {SECRET}",
        f"# token = {SECRET} words behind",
        f"url: https://user:{SECRET}@host/",
        f"url: https://{SECRET}@host/",
        f"api_key: {SECRET}\napi_key: {SECRET}",
        f"? api_key\n: {SECRET}",
    ],
)
def test_no_line_shows_a_secret(text: str) -> None:
    where = document("f", text)
    node, _ = parse(text, where)
    assert node is not None or text.startswith("#")
    shown = [where.source(line) for line in range(len(where.lines))]
    assert SECRET not in "\n".join(shown)
    assert "*" in "".join(shown)


@pytest.mark.parametrize(
    "text",
    [
        f"api_key: '{SECRET}",
        f"api_key: {SECRET}: x",
        f"api_key:\n  '{SECRET}",
        f"api_key:\n\n    # why\n  @{SECRET}",
        f"a:\n  api_key: |\n    {SECRET}\n   [{SECRET}",
        f"{{token: {SECRET}, b: ]",
        f"token: {SECRET}\n\tb: 1",
    ],
)
def test_no_finding_about_broken_yaml_shows_a_secret(text: str) -> None:
    _, findings = parse(text, document("f", text))
    assert findings
    assert SECRET not in repr(findings)


def test_what_follows_keeps_its_column() -> None:
    text = f"{{api_key: {SECRET}, b: [1]}}"
    where = document("f", text)
    parse(text, where)
    line = where.source(0)
    assert line.index("b: [1]") == text.index("b: [1]")


def test_counts_of_tokens_are_shown() -> None:
    assert mask_text("limits: {tokens: 5, max_tokens: 128}") == (
        "limits: {tokens: 5, max_tokens: 128}"
    )
