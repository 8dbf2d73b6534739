"""The logs of a node that stays: its own, and those of runs that have ended."""

from __future__ import annotations

import shutil
from collections import deque
from pathlib import Path

from agentsim.errors import UserError
from agentsim.rpc.staying import LogPart, Logs

_PART_BYTES = 256 * 1024
# Of a run's logs so many are given away, which keeps a message within its bounds.
_MOST = 128
# Logs of so many runs are kept when nobody has taken them.
_KEPT = 20


class RunLogs:
    """Folders of runs whose workers have logged where the node chose.

    Args:
        folder: they lie in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._left: deque[Path] = deque()

    def of(self, run_id: str) -> Path:
        """The folder of a run."""
        return self._folder / run_id

    def ended(self, run_id: str) -> None:
        """A run has ended; of logs that nobody takes, those of the last runs are kept."""
        self._left.append(self.of(run_id))
        if len(self._left) > _KEPT:
            shutil.rmtree(self._left.popleft(), ignore_errors=True)

    def take(self, run_id: str) -> Logs:
        """The ends of the logs that a run has left; they go."""
        folder, files = self.of(run_id), {}
        for path in sorted(folder.glob("*.log"))[:_MOST]:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - _PART_BYTES))
                files[path.name] = file.read(_PART_BYTES)
        shutil.rmtree(folder, ignore_errors=True)
        return Logs(files)


def read(path: str, offset: int) -> LogPart:
    """A part of a log; see `staying.ReadLog`.

    Raises:
        UserError: it cannot be read.
    """
    if not path:
        raise UserError("the node has no log of its own")
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size + offset) if offset < 0 else min(offset, size))
            data = file.read(_PART_BYTES)
            return LogPart(data, file.tell())
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
