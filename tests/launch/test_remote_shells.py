"""What a host's login shell is given does the same in bash, fish, csh and plain sh."""

import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agentsim.config.hostfile import Host, Ssh
from agentsim.launch import remote

SHELLS = ["sh", "dash", "bash", "fish", "tcsh"]
AWKWARD = """a'b"c$HOME`x`\\n%s!;&|<>*?[]{}~#é \\"""
SHOW = "import os, sys; print(os.getcwd()); print(os.environ['AWKWARD']); print(sys.stdin.read())"


def said(
    host: Host, folder: Path, shell: str = "sh", program: str = SHOW
) -> subprocess.CompletedProcess[str]:
    """What comes of a program that a shell was told to run as sshd tells it."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed; tests/install_beds installs it")
    line = remote.stdin(host, ["-c", program], ["/nowhere/python", sys.executable])
    return subprocess.run(
        [shell, "-c", remote.COMMAND],
        input=line.decode() + "the rest\nof stdin",
        capture_output=True,
        text=True,
        env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("setup", [[], ["echo noise", "cat", 'export AWKWARD="$AWKWARD$SHELLFUL"']])
def test_a_program_runs_with_its_environment_folder_and_stdin(
    shell: str, setup: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "it's a $folder"
    host = Host(workdir=str(folder), env={"AWKWARD": AWKWARD, "SHELLFUL": "!"}, setup=setup)
    done = said(host, tmp_path, shell)
    added = "!" if setup else ""
    assert done.stdout == f"{folder}\n{AWKWARD}{added}\nthe rest\nof stdin\n"
    assert ("noise" in done.stderr) == bool(setup)


def test_the_command_has_nothing_that_shells_read_differently() -> None:
    assert remote.arguments(Ssh(), "gpu01")[-2:] == ["gpu01", remote.COMMAND]
    _, quoted, after = remote.COMMAND.split("'")
    assert not set(quoted) & set("!\\\n%^")
    assert after == ""


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"setup": ["true", "echo no such module; (exit 3)"]}, remote.SETUP_FAILED, "status 3"),
        ({"python": "/nowhere/python"}, remote.NO_PYTHON, ""),
        ({"workdir": "/proc/nothing"}, remote.NO_FOLDER, "cannot create"),
    ],
)
def test_what_fails_on_the_way_is_told_apart(
    fields: dict[str, object], status: int, words: str, tmp_path: Path
) -> None:
    done = said(Host(**{"workdir": "~/w", **fields}), tmp_path)
    assert done.returncode == status
    assert words in done.stderr
    assert done.stdout == ""


def test_setup_has_what_a_login_shell_defines(tmp_path: Path) -> None:
    (tmp_path / ".bash_profile").write_text("module() { export LOADED=$2; }\n")
    host = Host(workdir="~", setup="module load cuda")
    done = said(host, tmp_path, program="import os; print(os.environ['LOADED'])")
    assert done.stdout == "cuda\n"


def test_a_python_at_home_is_found(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    host = Host(workdir="~", python="~/python")
    assert said(host, tmp_path, program="print('here')").stdout == "here\n"


def test_nothing_of_a_hostfile_is_an_argument_but_the_way_to_the_host() -> None:
    ssh = Ssh(user="sim", port=2222, config="/c", options=["ProxyJump=gate"])
    command = remote.arguments(ssh, "gpu01")
    assert command[0] == "ssh"
    assert ("-l", "sim") in itertools.pairwise(command)
    assert command.index("ProxyJump=gate") < command.index("ConnectTimeout=10")
    assert command[-3] == "--"
