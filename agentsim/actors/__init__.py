"""Agents on workers: users' classes, proxies, placeholders, and the runtime between them."""

from agentsim.actors.agent import Agent, CannotMove, Environment, on
from agentsim.actors.codec import CannotTravel
from agentsim.actors.placeholder import (
    CallCancelled,
    GroupPlaceholder,
    Placeholder,
    RemoteFailure,
    WouldBlock,
)
from agentsim.actors.proxy import Group, Proxy

__all__ = [
    "Agent",
    "CallCancelled",
    "CannotMove",
    "CannotTravel",
    "Environment",
    "Group",
    "GroupPlaceholder",
    "Placeholder",
    "Proxy",
    "RemoteFailure",
    "WouldBlock",
    "on",
]
