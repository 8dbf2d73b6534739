"""The hostfile: on which machines a run takes place."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentsim.config.base import FileModel


class Host(FileModel):
    """One machine; a node runs on each."""

    address: Annotated[str, Field(min_length=1)] = "localhost"
    """Name or address. The local launcher starts every host's node on this machine."""
    workers: Annotated[int, Field(ge=1, le=1024)] = 2
    """Worker processes on this host."""


class Hostfile(FileModel):
    """Machines and how their nodes are started."""

    launcher: Literal["local"] = "local"
    """`local`: nodes are child processes on this machine."""
    hosts: Annotated[list[Host], Field(min_length=1)] = [Host()]  # noqa: RUF012 pydantic copies it
    """At least one."""
