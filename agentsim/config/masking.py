"""Keeps secrets that stand in a file, where they should not, out of what is printed."""

from __future__ import annotations

import re

MASK = "***"

_ALONE = frozenset(("apikey", "authorization", "bearer", "credential", "credentials", "key")) | {
    *("passphrase", "passwd", "password", "passwords", "pwd", "secret", "secrets", "token")
}
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_USER = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_ASSIGNMENT = re.compile(r"""["']?([A-Za-z0-9_.-]+)["']?\s*[:=]""")


def is_secret(key: str) -> bool:
    """Whether a key looks like the name of a secret: `api_key`, `hfToken`, not `max_tokens`."""
    return any(word.lower() in _ALONE for word in _WORDS.findall(key))


def mask_spans(line: str, spans: list[tuple[int, int]]) -> str:
    """A line with `***` in place of some spans; what stands behind them keeps its columns."""
    for start, end in spans:
        width = max(end - start, 0)
        line = line[:start] + MASK.ljust(width)[: max(width, len(MASK))] + line[end:]
    return line.rstrip() if spans else line


def mask_addresses(text: str) -> str:
    """A text with users and passwords of addresses hidden, at the same length."""
    return _USER.sub(lambda found: "*" * len(found[0]), text)


def mask_text(line: str) -> str:
    """A line with everything behind a secret-looking key hidden: for comments and broken YAML."""
    line = mask_addresses(line)
    for found in _ASSIGNMENT.finditer(line):
        if not is_secret(found[1]):
            continue
        rest = line[found.end() :]
        value = rest.lstrip()
        if value and not value.startswith(MASK):
            return line[: found.end()] + rest[: len(rest) - len(value)] + MASK
    return line


def opens_secret(line: str) -> bool:
    """Whether a secret-looking key stands in a text, so that what follows may be its value."""
    return any(is_secret(found[1]) for found in _ASSIGNMENT.finditer(line))
