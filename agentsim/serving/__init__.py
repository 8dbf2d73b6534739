"""Starts model servers on this machine and stops them; nothing of them outlives this process."""

from agentsim.serving.server import ModelServer, check, server_key, start
from agentsim.serving.weights_file import weights

__all__ = ["ModelServer", "check", "server_key", "start", "weights"]
