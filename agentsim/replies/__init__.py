"""Text in, status and value out.

A reply is read once, by rules that settle what two readers may read differently. Nothing is
clipped, repaired or guessed: a wrong valid number is the worst outcome.
"""

from __future__ import annotations

from agentsim.replies.reader import read
from agentsim.replies.status import STATUSES, Reading, Status

__all__ = ["STATUSES", "Reading", "Status", "read"]
