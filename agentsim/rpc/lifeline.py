"""How a child program learns that its parent is gone: its stdin ends.

It works for a parent that was killed with SIGKILL, over ssh, and on every system. Linux's parent
death signal stands beside it for a child that is stopped and cannot read.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def first_line() -> bytes:
    """The configuration line that the parent wrote to stdin.

    Read byte by byte: a buffered reader would take what follows, and end of file with it.
    """
    line = bytearray()
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)


def hold(on_end: Callable[[], None], *, grace_s: float, die_with_parent: bool) -> None:
    """Call `on_end` from a thread when stdin ends, and end the process `grace_s` later.

    Args:
        on_end: asks the program to end in good order; must not print, since stderr may be a
            broken pipe by then, and an exception would end the thread.
        grace_s: seconds after which the process ends without further questions.
        die_with_parent: also ask the kernel for SIGKILL when the parent dies.
    """
    if die_with_parent and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def wait() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        with contextlib.suppress(BaseException):
            on_end()
        time.sleep(grace_s)
        os._exit(0)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


KEEP = b"keep\n"
"""What a parent writes to let a child live on without it."""


def until_kept(on_end: Callable[[], None], *, grace_s: float) -> None:
    """Like `hold`, until the parent has written KEEP: then stdin and stdout are left for good.

    Args:
        on_end: see `hold`.
        grace_s: see `hold`.
    """

    def wait() -> None:
        if first_line() + b"\n" == KEEP:
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)
            os.dup2(nothing, 1)
            return
        with contextlib.suppress(BaseException):
            on_end()
        time.sleep(grace_s)
        os._exit(0)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()
