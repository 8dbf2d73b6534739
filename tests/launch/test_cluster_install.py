"""`agentsim cluster install`: the agentsim that runs here comes to hosts."""

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ssh_runs import PATIENCE_S, tree
from whole_runs import ROOT, table

from agentsim.launch.wheel import package_files, wheel
from agentsim.version import __version__


def test_the_wheel_has_all_of_the_package_and_installs(tmp_path: Path) -> None:
    name, data = wheel()
    assert name == f"agentsim-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        for path, content in package_files().items():
            assert archive.read(f"agentsim/{path}") == content
        archive.extractall(tmp_path)
        needs = archive.read(f"agentsim-{__version__}.dist-info/METADATA").decode()
    assert "Requires-Dist: grpcio" in needs
    assert "Provides-Extra: llama-cpp" in needs
    asked = [sys.executable, "-P", "-c", "import agentsim; print(agentsim.__file__)"]
    done = subprocess.run(
        asked, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_run_on_what_was_installed(program, scenario, ssh_hosts) -> None:
    # What agentsim needs is large; here it comes from this machine.
    own = {name: {"env": {"PIP_NO_DEPS": "1"}} for name in ("node1", "node2")}
    own["node3"] = {"python": "/nowhere/python"}
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", hosts=own)
    install = ("cluster", "install", hosts)
    out, err = program.run(*install, "--dry-run", code=1, timeout_s=PATIENCE_S)
    assert "node1: would make " in out
    assert "node3: failed: there is no /nowhere/python" in out
    assert "it failed at 1 of 3 hosts" in err
    assert tree(ssh_hosts["node1"].home) == [".agentsim"]
    del own["node3"]
    hosts = ssh_hosts.hostfile(program.folder / "h.yaml", hosts=own)
    try:
        out, _ = program.run(*install, timeout_s=PATIENCE_S)
        assert f"node2: done: make {ssh_hosts['node2'].home}/.agentsim/venv from" in out
        out, _ = program.run(*install, timeout_s=PATIENCE_S)
        assert out.count("/.agentsim/venv already") == 2
        file = scenario()
        run = ("run", file, "--hosts", hosts, "--out", "R", "--quiet")
        _, err = program.run(*run, code=2, timeout_s=PATIENCE_S)
        assert "venv/bin/python lacks what agentsim needs: aiohttp" in err
        libraries = next(path for path in map(Path, sys.path) if (path / "grpc").is_dir())
        for name in own:
            (there,) = (ssh_hosts[name].home / ".agentsim/venv/lib").glob("python*/site-packages")
            assert (there / "agentsim" / "version.py").exists()
            (there / "libraries.pth").write_text(f"{libraries}\n")
        program.run(*run, timeout_s=PATIENCE_S)
        assert len(table(program.folder / "R")) == 20
    finally:
        for name in own:
            subprocess.run(["rm", "-rf", ssh_hosts[name].home / ".agentsim"], check=True)


@pytest.mark.slow
def test_a_hostfile_of_this_machine_needs_no_installation(program) -> None:
    _, err = program.run("cluster", "install", ROOT / "hostfiles" / "laptop.yaml", code=2)
    assert "the local launcher runs what is installed here" in err
