"""Built-in games: the part of a scenario that each brings, by the name in `game: {type: …}`."""

from __future__ import annotations

from agentsim.config.base import FileModel
from agentsim.games.guess_average import GuessAverageSpec

__all__ = ["GAMES"]

GAMES: dict[str, type[FileModel]] = {"guess_average": GuessAverageSpec}
