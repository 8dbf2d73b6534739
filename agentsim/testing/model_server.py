"""The fake model server as a program: `python -m agentsim.testing.model_server --mode mixed`.

Prints `READY <port>` when it listens and exits when stdin ends. `--api-key-env` names the
variable that holds the key to ask for.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Sequence
from typing import Literal

from agentsim.testing.answers import Answer, Ask, Mode
from agentsim.testing.fake_model import FakeModelServer

_STRUCTURED: dict[str, bool | Literal["lie", "refuse"]] = {
    "yes": True,
    "no": False,
    "lie": "lie",
    "refuse": "refuse",
}


def parser() -> argparse.ArgumentParser:
    """The program's options."""
    options = argparse.ArgumentParser(
        prog="python -m agentsim.testing.model_server",
        description="An OpenAI-compatible chat server for tests; it makes replies up.",
    )
    options.add_argument("--port", type=int, default=0, help="0: a free one")
    options.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.OK)
    options.add_argument("--after", type=int, default=0, help="good replies before the mode")
    options.add_argument("--first", type=int, help="requests in the mode; all later ones are ok")
    options.add_argument("--retry-after", help="value of that header on 429 and 503")
    options.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    options.add_argument("--structured", choices=list(_STRUCTURED), default="yes")
    options.add_argument("--model", action="append", default=[], help="a name it knows; repeat")
    options.add_argument("--api-key-env", help="variable with the key to ask for")
    return options


async def serve(arguments: argparse.Namespace) -> None:
    """Serves until it is cancelled or told to stop."""
    mode, delay_s = arguments.mode, arguments.delay
    end = None if arguments.first is None else arguments.after + arguments.first
    if mode is Mode.SLOW and not delay_s:
        delay_s = 1.0

    def script(ask: Ask) -> Answer:
        if ask.number < arguments.after or (end is not None and ask.number >= end):
            return Answer(delay_s=0.0 if mode is Mode.SLOW else delay_s)
        return Answer(mode=mode, delay_s=delay_s, retry_after=arguments.retry_after)

    key = os.environ.get(arguments.api_key_env) if arguments.api_key_env else None
    structured = _STRUCTURED[arguments.structured]
    server = FakeModelServer(script, structured=structured, models=arguments.model, api_key=key)
    await server.start(arguments.port)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    print(f"READY {server.port}", flush=True)
    await stopped.wait()
    await server.stop()


def main(argv: Sequence[str] | None = None) -> None:
    """Parses options and serves."""
    arguments = parser().parse_args(argv)
    threading.Thread(target=_exit_at_end_of_stdin, daemon=True).start()
    asyncio.run(serve(arguments))


def _exit_at_end_of_stdin() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


if __name__ == "__main__":
    main()
