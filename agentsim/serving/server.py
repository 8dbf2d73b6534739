"""Which server a backend needs, whether its parts are installed, and how it is started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from agentsim.config.models import AnsweringModel, LanguageModel, LlamaCpp, OpenAI
from agentsim.errors import UserError
from agentsim.serving import llama_cpp

READY_TIMEOUT_S = 60.0


class ModelServer(Protocol):
    """A model server that this process started.

    Attributes:
        base_url: address up to and including `/v1`; empty before `start`.
        api_key: what the server wants as a bearer token; made for this server alone.
        log_path: where its output goes.
        slots: requests that it serves at the same time.
        pid: of its process; None before `start`.
    """

    base_url: str
    api_key: str
    log_path: Path
    slots: int

    @property
    def pid(self) -> int | None: ...

    async def start(self) -> str:
        """Starts it and waits until it answers; returns `base_url`.

        Raises:
            LaunchError: it did not start; the message has the end of its log.
        """

    async def stop(self) -> None:
        """Stops it and waits until it is gone. May be called at any time, more than once."""

    async def steps(self) -> int | None:
        """How often it has made tokens so far, replies under way included; None when it does not
        say. A number that grows tells a long reply from a server that hangs."""

    def poll(self) -> int | None:
        """Its exit status; None while it runs or was never started."""


def check(spec: AnsweringModel) -> None:
    """Says early what is missing for this model, before anything is started.

    Raises:
        MissingPackage: a package is not installed; the message has the install line.
        UserError: a model file, or the variable with the key, is missing.
    """
    if isinstance(spec, LlamaCpp):
        llama_cpp.check(spec)
    elif isinstance(spec, OpenAI) and spec.api_key_env and not os.environ.get(spec.api_key_env):
        raise UserError(
            f"model.api_key_env names {spec.api_key_env}, which is not set in the environment; "
            f"run: export {spec.api_key_env}=…"
        )


def server_key(spec: AnsweringModel) -> str | None:
    """What tells servers of our own apart: models with equal keys can share one.

    None for a model whose server runs already.
    """
    if not isinstance(spec, LlamaCpp):
        return None
    return spec.model_dump_json(include={"backend", "name", "slots", "context", "threads"})


async def start(
    spec: LanguageModel, *, log_dir: Path, ready_timeout_s: float = READY_TIMEOUT_S
) -> ModelServer:
    """Starts the server of a model that runs on this machine.

    Args:
        spec: the model; one whose backend needs a server of our own.
        log_dir: where the server's log is written; made if missing.
        ready_timeout_s: how long it may take until it answers.

    Returns:
        The server, answering. Whoever holds it calls `stop`.

    Raises:
        UserError: the backend has no server of our own, or parts of it are missing.
        LaunchError: the server did not start.
    """
    if not isinstance(spec, LlamaCpp):
        raise UserError(f"backend {spec.backend} uses a server that runs already")
    server = llama_cpp.LlamaCppServer(spec, log_dir=log_dir, ready_timeout_s=ready_timeout_s)
    await server.start()
    return server
