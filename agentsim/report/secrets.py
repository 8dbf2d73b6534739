"""Finds keys in what is about to be passed on, and masks them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentsim.config.masking import MASK, is_secret

# Shorter values stand for nothing secret: `none`, `EMPTY`.
_LENGTH = 6
_NAME = r"[\w-]*(?:api[_-]?key|secret|passw(?:or)?d|passphrase|authorization|credentials?|token)"
_PROVIDERS = "sk|pk|rk|gsk|hf|ghp|gho|ghs|github_pat|glpat|xox[abprs]|nvapi|tgp"
# The beginning of a word, also behind the escaped end of a line in JSON.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_PATTERNS = [
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    # Of providers that mark their keys.
    _START + rf"(?:{_PROVIDERS})[-_][A-Za-z0-9_-]{{12,}}",
    _START + r"AKIA[0-9A-Z]{16}(?![0-9A-Z])",
    _START + r"AIza[0-9A-Za-z_-]{30,}",
    # JSON web tokens.
    _START + r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    _START + r"(?i:bearer\s+)(?P<bearer>[^\s\"'\\,;]{6,})",
    # Users and passwords of addresses.
    r"(?<=://)(?P<user>[^/@\s\"'\\]+)(?=@)",
    # Assignments in many notations: a=b, "a": "b", --a b.
    rf"(?i:\b{_NAME})\\?[\"']?\s*[:=]\s*\\?[\"']?(?i:(?:bearer|basic)\s+)?"
    r"(?P<value>[^\s\"'\\,;}\]]{6,})",
]
_KEYS = re.compile("|".join(_PATTERNS), re.DOTALL)


class Masks:
    """Masks values that are known to be secret, and what looks like a key.

    Args:
        environment: variables; the values of those that the manifest names as keys, and of those
            whose names look like a secret's, are masked.
        manifest: the run's, as text.

    Attributes:
        names: variables that the manifest names.
        count: how often something was masked.
    """

    def __init__(self, environment: Mapping[str, str], manifest: str) -> None:
        self.names = sorted(set(_key_variables(manifest)))
        self.count = 0
        values = {
            value
            for name, value in environment.items()
            if (name in self.names or is_secret(name.replace("_", " "))) and len(value) >= _LENGTH
        }
        # The longest first: one may be a part of another. In files they may be written as JSON.
        known = sorted(
            values | {json.dumps(value)[1:-1] for value in values}, key=len, reverse=True
        )
        self._patterns = [*([re.compile("|".join(map(re.escape, known)))] if known else []), _KEYS]

    def text(self, text: str) -> str:
        """A text with `***` in place of secrets."""
        for pattern in self._patterns:
            text = self._sub(pattern, text)
        return text

    def value(self, value: Any) -> Any:
        """A value of plain types with every text in it masked; names of fields stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        return [self.value(item) for item in value] if isinstance(value, list) else value

    def _sub(self, pattern: re.Pattern[str], text: str) -> str:
        def replace(found: re.Match[str]) -> str:
            group = found.lastgroup or 0
            secret = found[group]
            if not secret.strip("*"):
                return found[0]
            self.count += 1
            start = found.start(group) - found.start()
            whole: str = found[0]
            return whole[:start] + MASK + whole[start + len(secret) :]

        return pattern.sub(replace, text)


def _key_variables(manifest: str) -> Iterator[str]:
    """Names of the variables that hold keys, as a manifest says."""
    try:
        todo: list[Any] = [json.loads(manifest)]
    except ValueError:
        return
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            for key, value in item.items():
                if key == "api_key_env" and isinstance(value, str):
                    yield value
                else:
                    todo.append(value)
        elif isinstance(item, list):
            todo += item
