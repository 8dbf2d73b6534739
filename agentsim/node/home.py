"""The folder of a node that was started from another machine: its sockets and its logs."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

import msgspec

from agentsim.rpc.control import NodeConfig, log_name
from agentsim.rpc.sockets import private_folder

_COPY_S = 0.5
COPIED_S = 3 * _COPY_S
"""Seconds after which what was logged has been copied."""


def settle(config: NodeConfig) -> NodeConfig:
    """The settings of a node with a private folder of its own, into which it logs from now on.

    What it logs is copied to where its stderr went while somebody reads there: the ssh client that
    started it may end, or be stopped, and neither must stop the node.
    """
    folder = private_folder() / "logs"
    folder.mkdir()
    log = folder / (Path(config.log.path).name or "node.log")
    before = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    os.set_blocking(before, False)
    threading.Thread(target=_copy, args=(log, before), name="log copy", daemon=True).start()
    address = f"unix:{folder.parent}/node.sock" if config.address == "unix:" else config.address
    return msgspec.structs.replace(
        config,
        address=address,
        folder=str(folder.parent),
        log_dir=str(folder),
        logs_come_to="" if config.stay else str(Path(config.log.path).parent),
        log=msgspec.structs.replace(config.log, path=str(log)),
    )


def where_logs_come(config: NodeConfig, text: str) -> str:
    """A message with the places of logs as they are found when the node has ended."""
    if not config.logs_come_to:
        return text
    node = Path(config.log.path).stem

    def place(found: re.Match[str]) -> str:
        return f"{config.logs_come_to}/{log_name(node, found[1])}"

    return re.sub(re.escape(config.log_dir) + r"/([^\s/;:,]+)", place, text)


def _copy(log: Path, out: int) -> None:
    """Copy what is added to a log; what cannot be written now is written later."""
    file = log.open("rb", buffering=0)
    waiting = b""
    while True:
        waiting = waiting or file.read(65536)
        if waiting:
            try:
                waiting = waiting[os.write(out, waiting) :]
                continue
            except BlockingIOError:
                pass
            except OSError:
                break
        elif _renamed(log, file.fileno()):
            file.close()
            file = log.open("rb", buffering=0)
        time.sleep(_COPY_S)
    file.close()
    os.close(out)


def _renamed(log: Path, fd: int) -> bool:
    """Whether the path is another file's by now."""
    try:
        return not os.path.samestat(log.stat(), os.fstat(fd))
    except OSError:
        return False
