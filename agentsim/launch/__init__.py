"""Starting nodes on hosts."""

from agentsim.launch.base import UNKNOWN_STATUS, Launcher, NodeHandle
from agentsim.launch.held import held_locally
from agentsim.launch.local import LocalLauncher
from agentsim.launch.make import MakeLauncher, make
from agentsim.launch.preflight import usable

__all__ = [
    "UNKNOWN_STATUS",
    "Launcher",
    "LocalLauncher",
    "MakeLauncher",
    "NodeHandle",
    "held_locally",
    "make",
    "usable",
]
