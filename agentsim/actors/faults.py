"""Exceptions as they travel."""

from __future__ import annotations

import traceback

from agentsim.actors.messages import RemoteError
from agentsim.actors.placeholder import CallCancelled, RemoteFailure
from agentsim.actors.residents import CouldNotBeMade
from agentsim.errors import PeerLost

# An exception may hold what it was raised for; so much of its text travels.
_MOST_CHARACTERS = 50_000
_MOST_FRAMES = 20


def remote_error(error: BaseException, where: str) -> RemoteError:
    """An exception that a user's code or a hostile message raised, whatever it is.

    Args:
        where: worker and host.
    """
    if isinstance(error, PeerLost):
        return gone(str(error))
    if isinstance(error, RemoteFailure | CouldNotBeMade):
        return error.remote
    name = type(error).__qualname__
    if type(error).__module__ != "builtins":
        name = f"{type(error).__module__}.{name}"
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - a user's `__str__` may raise anything
        message = "an exception that cannot be shown"
    try:
        text = "".join(traceback.format_exception(error, limit=_MOST_FRAMES))
    except Exception:  # noqa: BLE001 - likewise
        text = ""
    return RemoteError(_sendable(name), _sendable(message), _sendable(text), where)


def gone(message: str) -> RemoteError:
    """What becomes of a call whose worker is gone."""
    return RemoteError(PeerLost.__name__, message, "", "")


def cancelled(where: str) -> RemoteError:
    """What becomes of a call that was cancelled."""
    return RemoteError(CallCancelled.__name__, "the call was cancelled", "", where)


def _sendable(text: str) -> str:
    """A text that can be written as UTF-8, and is not longer than anybody reads."""
    if len(text) > _MOST_CHARACTERS:
        half = _MOST_CHARACTERS // 2
        text = f"{text[:half]} … {len(text) - 2 * half} characters … {text[-half:]}"
    return text.encode("utf-8", "backslashreplace").decode()
