"""How a program learns that nobody needs it any more.

A child of the same machine holds its stdin: it ends with the parent, also with one that was killed
with SIGKILL, and on every system. Linux's parent death signal stands beside it for a child that is
stopped and cannot read. A program that was started from another machine has a lease instead: the
way to it may be cut for a while, and who is there again in time finds it as it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

from agentsim.rpc.awake import AwakeClock

_PR_SET_PDEATHSIG = 1
_TICK_S = 0.5


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


def leave_terminal() -> None:
    """What ends with the shell or ssh client that started this program is not for it."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with contextlib.suppress(PermissionError):  # it leads a session already
        os.setsid()


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


class Lease:
    """How long a program lives without anybody who holds it.

    Time counts only while the program itself can run (`AwakeClock`): a machine that slept does not
    end a run that goes on when it wakes.

    Args:
        length_s: None: it never runs out.
    """

    def __init__(self, length_s: float | None, clock: AwakeClock | None = None) -> None:
        self._length_s = length_s
        self._clock = clock or AwakeClock()
        self._holders = 0
        self._since_s = self._clock.now()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lease; it begins anew when nobody holds it any more."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            self._since_s = self._clock.now()

    async def run_out(self) -> None:
        """Wait until the lease has run out."""
        if self._length_s is None:
            await asyncio.get_running_loop().create_future()
            return
        while True:
            now_s = self._clock.now()
            if not self._holders and now_s - self._since_s >= self._length_s:
                return
            await asyncio.sleep(min(_TICK_S, self._length_s / 4))
