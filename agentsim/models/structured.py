"""Whether a server enforces a JSON schema, found by trying it. Pure: prompts and judgement.

Many servers take `response_format` and ignore it. So the schema asks for an odd word that the
prompt does not hold and speaks against: only a decoder that enforces the schema writes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

from agentsim.rpc.messages import Message

MIN_MAX_TOKENS = 64
"""Tokens of reply that a probe needs; the whitespace that a grammar allows is part of them."""
_TELLING_CHARACTERS = 4


class Sign(Enum):
    """What one probe's reply says."""

    ENFORCED = "enforced"
    IGNORED = "ignored"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Probe:
    """One question whose schema and wording disagree.

    Attributes:
        key: the only property that the schema allows.
        word: the only value that it may have.
        question: what the prompt asks for instead.
    """

    key: str
    word: str
    question: str

    @property
    def messages(self) -> list[Message]:
        """The prompt."""
        return [Message("user", f"{self.question} Answer with one plain word and nothing else.")]

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema that the reply must follow."""
        return {
            "type": "object",
            "properties": {self.key: {"type": "string", "enum": [self.word]}},
            "required": [self.key],
            "additionalProperties": False,
        }

    def judge(self, text: str, finish_reason: str) -> Sign:
        """Whether the reply shows that the schema was enforced."""
        written = re.sub(r"\s", "", text)
        wanted = f'{{"{self.key}":"{self.word}"}}'
        if written == wanted:
            return Sign.ENFORCED
        if finish_reason == "length" and wanted.startswith(written):
            # Cut. The braces alone may be luck, the odd word is not.
            told = len(written) - wanted.index(self.word)
            return Sign.ENFORCED if told >= _TELLING_CHARACTERS else Sign.UNCLEAR
        return Sign.IGNORED


PROBES = (
    Probe("qvx", "zukrobam", "What is the capital of France?"),
    Probe("wuj", "tifvelop", "Which colour has the sky on a clear day?"),
    Probe("zob", "krenquiv", "What do bees make?"),
    Probe("jyk", "plomwedr", "What is the opposite of cold?"),
)
"""Asked in this order until two say enforced, or one says ignored."""


def conclude(signs: list[Sign]) -> bool | None:
    """True when two probes were enforced, False when one was ignored, None while it is open."""
    if Sign.IGNORED in signs:
        return False
    return True if signs.count(Sign.ENFORCED) >= 2 else None
