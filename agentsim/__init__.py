"""Very large simulations in which LLM agents play games, from one declarative file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentsim.version import __version__

if TYPE_CHECKING:
    from agentsim.results import load_run

__all__ = ["__version__", "load_run"]


def __getattr__(name: str) -> Any:
    # `import agentsim` and `agentsim --help` stay quick: pandas and pyarrow come when asked for.
    if name == "load_run":
        from agentsim.results import load_run

        return load_run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
