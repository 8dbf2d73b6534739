"""The `model:` part of a scenario: who answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from agentsim.config.base import FileModel
from agentsim.config.rules import level, needs_no_password, sums_to_one, within_thinking_time

Sampling = Literal["per_agent"]


class _LanguageModel(FileModel):
    """What every language model has."""

    temperature: Annotated[float, Field(ge=0, le=2)] = 1.0
    """Sampling temperature, 0 to 2."""
    max_tokens: Annotated[int, Field(ge=1)] = 2048
    """Most tokens of one reply, reasoning included. A reply that is cut counts as truncated."""
    sampling: Sampling = "per_agent"
    """`per_agent`: each agent sends its own request with its own seed."""
    timeout_s: Annotated[float, Field(gt=0)] = 300.0
    """Seconds that one request may take before it is given up and tried again."""
    tries: Annotated[int, Field(ge=1, le=100)] = 4
    """HTTP requests for one attempt before it is recorded as failed. 429 and 5xx are tried again
    after a growing pause (or the server's `Retry-After`), as are timeouts and cut connections."""


class LlamaCpp(_LanguageModel):
    """A model that llama.cpp runs on this machine's CPU, one server for all workers of a host."""

    backend: Literal["llama_cpp"]
    """Says which model this is."""
    name: str = "smollm2-135m-instruct"
    """`smollm2-135m-instruct` (the embedded model), or the path of a .gguf file."""
    slots: Annotated[int, Field(ge=1, le=256)] = 16
    """Replies written at the same time."""
    context: Annotated[int, Field(ge=256)] = 2048
    """Tokens of prompt and reply together, for each slot."""
    threads: Annotated[int, Field(ge=1)] = 1
    """CPU threads. More than one collapses when another program is busy (spin barriers)."""


class OpenAI(_LanguageModel):
    """Any server that speaks the OpenAI chat completions protocol."""

    backend: Literal["openai"]
    """Says which model this is."""
    name: Annotated[str, Field(min_length=1, examples=["gpt-4o-mini"])]
    """The model's name at the server."""
    base_url: Annotated[
        str, Field(pattern=r"^https?://[^/]"), AfterValidator(needs_no_password)
    ] = "https://api.openai.com/v1"
    """Address up to and including `/v1`, without a password."""
    api_key_env: Annotated[
        str | None, Field(pattern=r"^[A-Z_][A-Z0-9_]*$", examples=["OPENAI_API_KEY"])
    ] = None
    """Name of the environment variable that holds the key, in capitals; the key itself never
    stands in a file."""
    concurrency: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Most requests in flight at once; the limit adapts below it."""


class Replay(FileModel):
    """The recorded replies of an earlier run, given again; no model is asked. A request without a
    recording fails. Replies are asked for and read in the format of that run, unless
    `replies.format` says otherwise."""

    backend: Literal["replay"]
    """Says which model this is."""
    run: Annotated[str, Field(min_length=1, examples=["../runs/guess-two-thirds"])]
    """Directory of the run, which must have finished; from the folder of this file on."""


class CognitiveHierarchy(FileModel):
    """Players of the Poisson cognitive hierarchy (Camerer, Ho, Chong 2004)."""

    backend: Literal["cognitive_hierarchy"]
    """Says which model this is."""
    tau: Annotated[float, Field(gt=0, le=20)] = 1.5
    """Mean of the Poisson distribution of levels."""
    spread: Annotated[float, Field(ge=0)] = 10.0
    """Half-width of level 0's guesses around its centre after round 1, in the game's unit."""


class LevelK(FileModel):
    """Players of given levels; each best-replies to the level below (Nagel 1995)."""

    backend: Literal["level_k"]
    """Says which model this is."""
    levels: Annotated[
        dict[Annotated[str, AfterValidator(level)], Annotated[float, Field(ge=0)]],
        Field(min_length=1),
        AfterValidator(sums_to_one),
    ] = {  # noqa: RUF012 pydantic copies it
        "0": 0.15,
        "1": 0.4,
        "2": 0.35,
        "3": 0.1,
    }
    """Share of each level, by level number, 0 to 100; the shares sum to 1 (within 1e-6)."""
    spread: Annotated[float, Field(ge=0)] = 10.0
    """Half-width of level 0's guesses around its centre after round 1, in the game's unit."""


class Random(FileModel):
    """Players that guess uniformly over the range."""

    backend: Literal["random"]
    """Says which model this is."""


class Dummy(FileModel):
    """Players that think for a time, then guess uniformly over the range."""

    backend: Literal["dummy"]
    """Says which model this is."""
    think_s: Annotated[float, Field(ge=0, le=86_400)] = 1.0
    """Mean thinking time of one action, seconds."""
    jitter_s: Annotated[float, Field(ge=0)] = 0.0
    """Each agent thinks `think_s` plus a uniform draw from ± this, seconds; at most `think_s`."""
    text_bytes: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Length of a made-up text that each agent sends with its guess, bytes; 0: none."""

    @field_validator("jitter_s")
    @classmethod
    def _check_jitter(cls, jitter_s: float, info: ValidationInfo) -> float:
        return within_thinking_time(jitter_s, info.data.get("think_s"))


Model = Annotated[
    LlamaCpp | OpenAI | Replay | CognitiveHierarchy | LevelK | Random | Dummy,
    Field(discriminator="backend"),
]
LANGUAGE_MODELS = (LlamaCpp, OpenAI, Replay)
"""Models that nodes answer for, request by request."""
LanguageModel = LlamaCpp | OpenAI
AnsweringModel = LanguageModel | Replay
ScriptedModel = CognitiveHierarchy | LevelK | Random | Dummy
