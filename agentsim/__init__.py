"""Very large simulations in which LLM agents play games, from one declarative file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentsim.version import __version__

if TYPE_CHECKING:
    from agentsim.actors import Agent, Environment, Placeholder, Proxy, on
    from agentsim.chat import Model, Persona, Reply
    from agentsim.cluster import Cluster
    from agentsim.results import load_run
    from agentsim.workflow import Workflow

__all__ = [
    "Agent",
    "Cluster",
    "Environment",
    "Model",
    "Persona",
    "Placeholder",
    "Proxy",
    "Reply",
    "Workflow",
    "__version__",
    "load_run",
    "on",
]

_FROM = {
    "Agent": "agentsim.actors",
    "Cluster": "agentsim.cluster",
    "Environment": "agentsim.actors",
    "Model": "agentsim.chat",
    "Persona": "agentsim.chat",
    "Placeholder": "agentsim.actors",
    "Proxy": "agentsim.actors",
    "Reply": "agentsim.chat",
    "Workflow": "agentsim.workflow",
    "load_run": "agentsim.results",
    "on": "agentsim.actors",
}


def __getattr__(name: str) -> Any:
    # `import agentsim` and `agentsim --help` stay quick: what is heavy comes when asked for.
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_FROM[name]), name)
