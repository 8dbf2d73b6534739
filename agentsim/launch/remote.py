"""What is said to the system's `ssh`, and what a host's shell is given to run.

The command that a host's login shell sees is the same for all and has nothing in it that bash,
fish and csh read differently: it starts `sh`, which takes one line of its own from stdin. That
line holds all else, so nothing of a hostfile is in an argument list on this machine, and what
follows it on stdin is left to the program.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from agentsim.config.hostfile import Host, Ssh

COMMAND = "exec sh -c 'IFS= read -r line; eval \"$line\"'"
NO_FOLDER, NO_PYTHON, SETUP_FAILED = 95, 96, 97
"""What the script exits with when it does not come to its program; ssh's own failures are 255."""


def arguments(ssh: Ssh, address: str, *, forward: str = "") -> list[str]:
    """The argument list of `ssh`.

    Args:
        ssh: the hostfile's.
        address: the host's.
        forward: `LOCAL:REMOTE` of two Unix sockets, for a tunnel. What it runs there waits for
            the end of its stdin, so that a tunnel ends with whoever has begun it.
    """
    options = [
        "BatchMode=yes",
        "LogLevel=ERROR",
        *ssh.options,
        f"ConnectTimeout={math.ceil(ssh.connect_timeout_s)}",
        "ServerAliveInterval=5",
        "ServerAliveCountMax=3",
        "RemoteCommand=none",
        "PermitLocalCommand=no",
    ]
    if forward:
        options.append("StreamLocalBindUnlink=yes")
    else:  # forwards of the user's configuration are for one connection at a time
        options.append("ClearAllForwardings=yes")
    command = ["ssh", "-T", "-a", "-x", "-e", "none"]
    for option in options:
        command += ["-o", option]
    if ssh.config is not None:
        command += ["-F", ssh.config]
    if ssh.user is not None:
        command += ["-l", ssh.user]
    if ssh.port is not None:
        command += ["-p", str(ssh.port)]
    if forward:
        command += ["-L", forward]
    return [*command, "--", address, COMMAND]


def stdin(host: Host, program: Sequence[str], pythons: Sequence[str]) -> bytes:
    """What stdin begins with: one line that runs a Python program as the hostfile says.

    The program has the rest of stdin, and its stdout is ssh's.

    Args:
        host: whose `env`, `setup`, `workdir` and `python` count.
        program: arguments of Python.
        pythons: Pythons to try, in order, when the host names none; the first that is there runs.
    """
    return one_line(_script(host, program, pythons)) + b"\n"


def venv_folder(host: Host) -> str:
    """The virtual environment that `agentsim cluster install` makes on a host."""
    return f"{host.workdir.rstrip('/')}/venv"


def venv_python(host: Host) -> str:
    """The Python in it."""
    return f"{venv_folder(host)}/bin/python"


def quoted(path: str) -> str:
    """A path for `sh`; `~` at its beginning is the home of who logs in."""
    if path == "~":
        return '"$HOME"'
    if path.startswith("~/"):
        return '"$HOME"/' + shlex.quote(path[2:])
    return shlex.quote(path)


def one_line(script: str) -> bytes:
    """A script of several lines as one that does the same."""
    if "\n" not in script:
        return script.encode()
    text = script.replace("\\", "\\\\").replace("\n", "\\n").replace("%", "%%")
    return f'eval "$(printf {shlex.quote(text)})"'.encode()


def _failed(line: str) -> str:
    words = "agentsim: the setup line `%s` failed with status %s\\n"
    say = f"printf {shlex.quote(words)} {shlex.quote(line)} $agentsim_status"
    return f"{{ {say}; exit {SETUP_FAILED}; }}"


def _script(host: Host, program: Sequence[str], pythons: Sequence[str]) -> str:
    folder = quoted(host.workdir)
    lines = [
        # What is run on the way has neither the program's stdin nor its stdout.
        "exec 3<&0 4>&1 </dev/null 1>&2",
        f"mkdir -p {folder} && cd {folder} || exit {NO_FOLDER}",
        *(f"export {name}={shlex.quote(value)}" for name, value in host.env.items()),
    ]
    setup = [host.setup] if isinstance(host.setup, str) else host.setup
    for line in setup:
        lines += [line, f"agentsim_status=$?; [ $agentsim_status = 0 ] || {_failed(line)}"]
    wanted = [host.python] if host.python is not None else list(pythons)
    tried = " ".join(quoted(python) for python in wanted)
    ending = "exec 0<&3 3<&- 1>&4 4>&-"
    run = f'{ending}; exec "$agentsim_python" {shlex.join(program)}'
    lines += [
        f"for agentsim_python in {tried}; do",
        f'if command -v "$agentsim_python" >/dev/null 2>&1; then {run}; fi',
        "done",
        f"exit {NO_PYTHON}",
    ]
    body = "\n".join(lines)
    if not setup:
        return body
    # `module` and the like are functions that login shells define.
    return (
        f"agentsim_script={shlex.quote(body)}\n"
        "if command -v bash >/dev/null 2>&1\n"
        'then exec bash -lc "$agentsim_script"\n'
        'else exec sh -lc "$agentsim_script"\nfi'
    )
