"""The hostfile: on which machines a run takes place."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from agentsim.config.base import FileModel
from agentsim.config.rules import no_secret, ports

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
# What could pass for an option of ssh is no address.
_ADDRESS = r"^[^\s-]\S*$"


class Host(FileModel):
    """One machine; a node runs on each."""

    address: Annotated[str, Field(min_length=1, pattern=_ADDRESS)] = "localhost"
    """Name or address; for the ssh launcher, anything that `ssh` takes, aliases of its
    configuration included. The local launcher starts every host's node on this machine."""
    workers: Annotated[int, Field(ge=1, le=1024)] = 2
    """Worker processes on this host."""
    python: Annotated[str | None, Field(min_length=1, examples=["/opt/sim/bin/python"])] = None
    """The Python on the host that has agentsim. None: the one that `agentsim cluster install`
    made, else the path of the one that runs here if it is there too, else `python3`."""
    setup: Annotated[str | list[str], Field(examples=["module load cuda"])] = []  # noqa: RUF012
    """Shell lines that a login shell (bash, or sh) runs before the node, e.g. `module load cuda`.
    One that fails ends the start."""
    env: Annotated[
        dict[Annotated[str, Field(pattern=_VARIABLE), AfterValidator(no_secret)], str],
        Field(examples=[{"OMP_NUM_THREADS": "4"}]),
    ] = {}  # noqa: RUF012
    """Environment variables of the node and what it starts; no secrets: the processes of a host
    can be looked at."""
    workdir: Annotated[str, Field(min_length=1)] = "~/.agentsim"
    """Folder on the host, made when it is not there; the node works in it, and
    `agentsim cluster install` installs into it."""
    port: Annotated[int | str, Field(examples=[7000]), AfterValidator(ports)] = "7000-7099"
    """Where the node listens: a number, a range whose first free port is taken, or 0 for any free
    port. A tunnel needs none."""
    advertise: Annotated[str | None, Field(pattern=_ADDRESS, examples=["10.0.0.2"])] = None
    """Address that this machine connects to; None: what `ssh` connects to."""
    gpus: Annotated[int | None, Field(ge=0, le=64, examples=[8])] = None
    """GPUs that the host must have; None: not looked at."""


class Ssh(FileModel):
    """How hosts are reached by the ssh launcher, beyond the user's own configuration of `ssh`."""

    user: Annotated[str | None, Field(pattern=_ADDRESS, examples=["sim"])] = None
    """Name to log in with; None: what `ssh` would take."""
    config: Annotated[str | None, Field(min_length=1, examples=["~/.ssh/config"])] = None
    """A configuration file of `ssh`; None: the user's."""
    port: Annotated[int | None, Field(ge=1, le=65535, examples=[22])] = None
    """Port of the hosts' ssh servers; None: what `ssh` would take."""
    connect_timeout_s: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Seconds that connecting to a host may take."""
    parallel: Annotated[int, Field(ge=1, le=256)] = 8
    """Hosts that are connected to at the same time; jump hosts and ssh servers drop more."""
    options: Annotated[
        list[Annotated[str, Field(pattern=r"^[A-Za-z]+=\S.*$")]],
        Field(examples=[["ProxyJump=gate.example.org"]]),
    ] = []  # noqa: RUF012
    """Further options, each as `ssh -o` takes it."""


class Hostfile(FileModel):
    """Machines and how their nodes are started."""

    launcher: Literal["local", "ssh"] = "local"
    """`local`: nodes are child processes on this machine; `ssh`: they are started on each host by
    the system's `ssh`."""
    hosts: Annotated[
        list[Host], Field(min_length=1, examples=[[{"address": "localhost", "workers": 2}]])
    ] = [Host()]  # noqa: RUF012 pydantic copies it
    """At least one."""
    minimum_hosts: Annotated[int | None, Field(ge=1, examples=[3])] = None
    """A run starts when so many hosts are up, on these; None: all must be."""
    transport: Literal["direct", "tunnel"] = "direct"
    """`direct`: this machine connects to a port of each host; `tunnel`: through `ssh`, for hosts
    whose ports are closed. Both are encrypted, and both sides show certificates."""
    ssh: Ssh = Ssh()
    """How hosts are reached by the ssh launcher."""
    cluster: Annotated[str | None, Field(min_length=1, examples=["lab"])] = None
    """Name of a cluster that stays: its nodes are used, and go on when the run has ended. The file
    that `--cluster NAME` reads says it. None: nodes are started, and end with the run."""
