"""The model server of whole runs."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def model_server(program) -> Iterator[Callable[..., str]]:
    """Starts the fake model server; gives its base URL."""
    servers = []

    def start(*args: str) -> str:
        server = subprocess.Popen(
            [sys.executable, "-m", "agentsim.testing.model_server", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "FAKE_KEY": "sk-planted-secret-0123456789"},
        )
        servers.append(server)
        word, port = server.stdout.readline().split()
        assert word == "READY"
        return f"http://127.0.0.1:{port}/v1"

    yield start
    for server in servers:
        server.communicate(timeout=10)
