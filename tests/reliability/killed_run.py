"""Runs `agentsim`, and kills it with SIGKILL in the middle of writing a record of its journal.

    python killed_run.py POINT COMMAND…

POINT is N:HOW: at the Nth record that this process appends, counted from 1; HOW is `before` it,
`torn` (half of its bytes are written) or `after` it.
"""

import os
import signal
import sys

from agentsim.cli import main
from agentsim.results import framing
from agentsim.results.journal import Journal

number, how = sys.argv[1].split(":")
del sys.argv[1]
left = int(number)
append = Journal.append


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_append(self: Journal, kind: framing.Kind, body: bytes) -> int:
    global left
    left -= 1
    if left:
        return append(self, kind, body)
    if how == "torn":
        whole = b"".join(map(bytes, framing.pack(kind, body)))
        os.write(self._fd, whole[: len(whole) // 2])
    elif how == "after":
        append(self, kind, body)
    end()
    return 0


Journal.append = killed_append  # type: ignore[method-assign]
main()
