"""What a reader sees of a run: from its directory alone."""

from agentsim.report.text import plain, render
from agentsim.report.write import write_report

__all__ = ["plain", "render", "write_report"]
