"""An observer that writes to the log what a run tells to whoever watches it."""

from __future__ import annotations

import logging
import time
from typing import Any, TypeVar, cast

from agentsim.orchestrator.observer import Watcher
from agentsim.rpc.messages import Settle

_log = logging.getLogger(__name__)
# Thousands of small rounds a second would be thousands of lines.
_SETTLED_EVERY_S = 1.0

_W = TypeVar("_W", bound=Watcher)


def logged(observer: _W) -> _W:
    """The same observer; stages, notices and settled rounds are logged, too."""
    return cast("_W", _Logged(observer))


class _Logged:
    def __init__(self, observer: Any) -> None:
        self._observer = observer
        self._settled_s = 0.0
        self._unlogged = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._observer, name)

    def stage(self, name: str) -> None:
        _log.info("%s", name)
        self._observer.stage(name)

    def notice(self, text: str) -> None:
        _log.warning("%s", text)
        self._observer.notice(text)

    def settled(self, settle: Settle) -> None:
        now_s = time.monotonic()
        if now_s - self._settled_s < _SETTLED_EVERY_S:
            self._unlogged += 1
        else:
            others = f", and {self._unlogged} others before" if self._unlogged else ""
            round, session, n = settle.round, settle.session, settle.n
            _log.info("round %d of session %d settled: %d agents%s", round, session, n, others)
            self._settled_s, self._unlogged = now_s, 0
        self._observer.settled(settle)
