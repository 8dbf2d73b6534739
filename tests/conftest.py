"""Fixtures for tests that run the whole program."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from beds import ssh_hosts as beds
from beds.ssh_hosts import SshHosts
from hypothesis import settings
from whole_runs import Program


def pytest_configure(config: pytest.Config) -> None:
    """The fast tier makes a third of Hypothesis's examples, the slow tier all of them."""
    if config.option.markexpr == "not slow":
        settings.register_profile("fast", max_examples=33)
        settings.load_profile("fast")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole runs are the slow tier's, but for the few that are marked `quick`."""
    for item in items:
        whole = "program" in getattr(item, "fixturenames", ())
        if whole and item.get_closest_marker("quick") is None:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Runs `agentsim`; nothing of it may be left at the end of the test."""
    program = Program(tmp_path)
    try:
        yield program
        program.assert_nothing_left()
    finally:
        program.end()


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[..., Path]:
    """Writes a scenario file."""

    def write(*, name: str = "test", **fields: Any) -> Path:
        contents = {
            "name": name,
            "agents": 10,
            "rounds": 2,
            "seed": 1,
            "game": {"type": "guess_average"},
            "model": {"backend": "random"},
        } | fields
        path = tmp_path / f"{name}.yaml"
        path.write_text(yaml.safe_dump(contents, sort_keys=False))
        return path

    return write


@pytest.fixture(scope="module")
def ssh_bed() -> Iterator[SshHosts]:
    """Four SSH hosts in network namespaces, for all tests of a file. Use `ssh_hosts`."""
    if why := beds.why_no_namespaces():
        pytest.skip(why)
    with beds.in_namespaces(4) as bed:
        yield bed


@pytest.fixture
def ssh_hosts(ssh_bed: SshHosts, program: Program) -> Iterator[SshHosts]:
    """Four SSH hosts in network namespaces; nothing may be left on any of them after the test."""
    for name in ssh_bed.names:
        program.wait_for(lambda name=name: ssh_bed.reached(name), 30)
    try:
        yield ssh_bed
        ssh_bed.heal()
        for name in ssh_bed.names:
            program.wait_for(lambda name=name: not ssh_bed.left(name), 30)
    finally:
        ssh_bed.heal()
        for host in ssh_bed.hosts:
            ssh_bed.end(host.name)


@pytest.fixture(scope="module")
def loopback_hosts() -> Iterator[SshHosts]:
    """Two SSH hosts on loopback, for whoever runs the tests."""
    if why := beds.why_no_sshd():
        pytest.skip(why)
    with beds.on_loopback(2) as bed:
        yield bed
