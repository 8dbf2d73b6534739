"""The codes of findings. They are stable: scripts may look at them."""

from __future__ import annotations

CODES: dict[str, str] = {
    "bad-expression": "an expression, such as the target of a game, cannot be used",
    "bad-override": "a value from the command line has no usable name",
    "bad-value": "a value that has the right type and still cannot be used",
    "contradiction": "two values that cannot both hold",
    "duplicate-key": "a key stands twice in one map",
    "missing-key": "a required key is missing",
    "not-served": "a part of the design that this version does not serve yet",
    "out-of-range": "a number, or a length, outside its bounds",
    "secret-in-file": "a secret stands in a file; name an environment variable instead",
    "shares-sum": "shares that must sum to 1 do not",
    "too-large": "a file, its nesting or what its aliases expand to is too large",
    "unknown-key": "a key that does not exist",
    "unknown-value": "a word that is not among the possible ones",
    "unreadable-file": "a file is missing, or cannot be read as text",
    "wrong-type": "a value of the wrong type",
    "yaml-syntax": "the text is not YAML that these files use",
}
"""Each code with what it means."""
