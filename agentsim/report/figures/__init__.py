"""The figures of a report, drawn with matplotlib. Nothing here reads a file."""

from agentsim.report.figures.drawn import Figure, draw

__all__ = ["Figure", "draw"]
