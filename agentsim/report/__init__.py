"""What a reader sees of a run: from its directory alone."""

from agentsim.report.text import plain, render

__all__ = ["plain", "render"]
