"""Starting nodes on hosts."""

from agentsim.launch.base import Launcher, NodeHandle
from agentsim.launch.local import LocalLauncher

__all__ = ["Launcher", "LocalLauncher", "NodeHandle"]
