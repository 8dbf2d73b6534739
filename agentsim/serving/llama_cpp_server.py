"""The child process that runs llama.cpp's server. It is started as a file and imports no agentsim.

Its configuration is the first line of stdin, as JSON, because it holds a key. It prints
`READY <port>` when it serves, and is gone at once when stdin ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

_PR_SET_PDEATHSIG = 1
_WARNINGS = 2
# Agents outnumber slots: their transcripts are kept in memory, which halves the time of a later
# round; llama.cpp's own bound is 8 GiB, too much for a laptop.
_PROMPT_CACHE_MIB = 1024


class ServerConfig(Struct, frozen=True):
    """What the parent says on stdin.

    Attributes:
        model_path: a .gguf file.
        api_key: what clients must send as a bearer token.
        slots: replies written at the same time.
        context: tokens of prompt and reply together, for each slot.
        threads: CPU threads.
    """

    model_path: str
    api_key: str
    slots: int
    context: int
    threads: int

    def __repr__(self) -> str:
        return f"ServerConfig({self.model_path!r})"


def main() -> None:
    """Serves until stdin ends."""
    _die_with_parent()
    config = msgspec.json.decode(_first_line(), type=ServerConfig)
    threading.Thread(target=_exit_at_end_of_stdin, daemon=True).start()
    port = _serve(config)
    os.write(1, f"READY {port}\n".encode())
    os.dup2(2, 1)  # nobody reads stdout any more
    threading.Event().wait()


_server: object = None  # the server lives as long as this reference


def _serve(config: ServerConfig) -> int:
    """Starts the server in this process; returns its port."""
    import xllamacpp

    global _server
    params = xllamacpp.CommonParams()
    params.model.path = config.model_path
    params.n_parallel = config.slots
    params.n_ctx = config.slots * config.context
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = config.threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [config.api_key]
    params.endpoint_metrics = True
    params.ui = False
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.verbosity = _WARNINGS
    _server = server = xllamacpp.Server(params)
    port: int | None = urlsplit(server.listening_address).port
    if not port:
        raise RuntimeError(f"no port in {server.listening_address!r}")
    return port


def _first_line() -> bytes:
    # Byte by byte from the descriptor: a buffered reader would take what comes after it.
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            os._exit(0)
        line += byte
    return line


def _exit_at_end_of_stdin() -> None:
    # os._exit and not a word: stdout and stderr may have gone with the parent.
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


def _die_with_parent() -> None:
    """Asks Linux for a kill when the parent dies; elsewhere the end of stdin must do."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
