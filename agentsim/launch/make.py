"""Which launcher a hostfile asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from agentsim.config.hostfile import Hostfile
from agentsim.launch.attach import attach_to
from agentsim.launch.base import Launcher
from agentsim.launch.local import LocalLauncher
from agentsim.launch.ssh import SshLauncher

MakeLauncher = Callable[[Path, Mapping[str, str]], Launcher]
"""Gives a launcher for a run, from the directory of its logs and the keys of its models' endpoints
by the names of their variables."""


def make(hostfile: Hostfile, log_dir: Path, api_keys: Mapping[str, str]) -> Launcher:
    """The launcher that a hostfile names.

    Args:
        hostfile: of the run.
        log_dir: where nodes, workers and model servers log.
        api_keys: of model endpoints, by the name of their variable.

    Raises:
        UserError: the hostfile names a cluster that is not there.
    """
    if hostfile.cluster is not None:
        return attach_to(hostfile.cluster, log_dir, api_keys)
    if hostfile.launcher == "ssh":
        return SshLauncher(hostfile, log_dir, api_keys)
    return LocalLauncher(log_dir, api_keys)
