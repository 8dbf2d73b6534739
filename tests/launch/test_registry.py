"""The clusters of a user: names, folders, secrets."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from agentsim.config import load_hostfile
from agentsim.config.hostfile import Host, Hostfile
from agentsim.errors import UserError
from agentsim.launch import registry
from agentsim.launch.registry import Staying, StayingNode


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "agentsim" / "clusters"


def staying(name: str = "lab") -> Staying:
    node = StayingNode("one", "unix:/x/node.sock", 1, "/x/log", "/x", True, 4)
    return Staying(name, "0.1.0", "2026-11-30T02:00:00+00:00", "local", 60.0, [node])


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_read_and_for_the_owner_alone(state: Path) -> None:
    new = registry.create("lab")
    new.write(staying())
    new.write_hosts(Hostfile(hosts=[Host(address="one", workers=3)]))
    authority = new.make_authority()
    again = registry.registry("lab").authority()
    assert again is not None
    assert (again.certificate, again.key) == (authority.certificate, authority.key)
    assert registry.registry("lab").read() == staying()
    assert registry.registry("lab").read_hosts().hosts[0].workers == 3
    assert registry.names() == ["lab"]
    assert mode(state / "lab") == 0o700
    assert {mode(path) for path in (state / "lab").iterdir() if path.is_file()} == {0o600}
    new.remove()
    assert registry.names() == []


def test_a_name_is_taken_once() -> None:
    registry.create("lab").write(staying())
    with pytest.raises(UserError, match="agentsim cluster down --name lab"):
        registry.create("lab")


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "-x", "a b", "x" * 65])
def test_a_name_leads_nowhere_else(name: str) -> None:
    with pytest.raises(UserError, match="no name for a cluster"):
        registry.registry(name)


def test_an_unknown_cluster_is_told_with_those_that_there_are() -> None:
    registry.create("lab").write(staying())
    with pytest.raises(UserError, match="no cluster lap; there are: lab"):
        registry.registry("lap").read()


def test_a_broken_file_is_told(state: Path) -> None:
    registry.create("lab")
    (state / "lab" / "cluster.json").write_text("{")
    with pytest.raises(UserError, match=r"cluster\.json: cannot be read"):
        registry.registry("lab").read()


def test_one_command_changes_a_cluster_at_a_time() -> None:
    known = registry.create("lab")
    with (
        known.locked(),
        pytest.raises(UserError, match="another command"),
        registry.registry("lab").locked(),
    ):
        pass
    with known.locked():
        pass
    assert list(known.path.parent.glob(".*.lock")) == []


def test_what_a_killed_start_has_left_is_in_nobodys_way(state: Path) -> None:
    registry.create("lab").make_authority()
    assert registry.names() == []
    new = registry.create("lab")
    assert [path.name for path in (state / "lab").iterdir()] == ["logs"]
    new.write(staying())


def test_runs_use_the_hosts_that_are_not_drained() -> None:
    new = registry.create("lab")
    new.write(staying())
    hosts = [Host(address="one", workers=3), Host(address="two")]
    new.write_hosts(Hostfile(hosts=hosts), drained=["one"])
    loaded = load_hostfile(registry.hostfile_of("lab"))
    assert (loaded.cluster, [host.address for host in loaded.hosts]) == ("lab", ["two"])
    assert new.read_hosts().hosts == hosts
    new.write_hosts(new.read_hosts(), drained=["one", "two"])
    with pytest.raises(UserError, match="all of its hosts are drained"):
        registry.hostfile_of("lab")


def test_the_hostfile_of_every_launcher_can_be_read_again() -> None:
    new = registry.create("lab")
    new.write(staying())
    for hostfile in (
        Hostfile(),
        Hostfile(launcher="ssh", hosts=[Host(address="a"), Host(address="b")], minimum_hosts=2),
    ):
        new.write_hosts(hostfile)
        loaded = load_hostfile(registry.hostfile_of("lab"))
        assert loaded == hostfile.model_copy(update={"cluster": "lab"})
