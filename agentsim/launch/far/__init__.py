"""Small programs that run on hosts, for what the node cannot do: it is not there yet, or no more.

Their sources travel through ssh and are run by whatever Python is there, so they use its standard
library alone, and nothing that is newer than Python 3.6. What they have to say is behind a mark,
since login shells may write before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MARK = b"--agentsim--"


def program(name: str, asked: dict[str, Any]) -> list[str]:
    """The arguments of Python for one of them.

    Args:
        name: of its file.
        asked: what it is told, as its only argument.
    """
    source = (Path(__file__).parent / f"{name}.py").read_text("utf-8")
    return ["-c", source, json.dumps({**asked, "mark": MARK.decode()})]


def answer(output: bytes) -> bytes | None:
    """What stands behind the mark; None when it is not there."""
    _, mark, rest = output.partition(MARK)
    return rest if mark else None
