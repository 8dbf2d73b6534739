"""Reads the tree of a hostfile: its model, and what that cannot say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from agentsim.config import served
from agentsim.config.check import Checked, check
from agentsim.config.files import display
from agentsim.config.hostfile import Hostfile
from agentsim.config.tree import Mapping, Node, Path, beside, find, given, key_place, place
from agentsim.config.words import name_of
from agentsim.errors import Finding

_OF_SSH = ("minimum_hosts", "transport", "ssh")
_OF_SSH_HOSTS = ("python", "setup", "env", "workdir", "port", "advertise")


def hostfile(tree: Node) -> Checked[Hostfile]:
    """Check a hostfile's tree; the path of a configuration of ssh is made one of this machine."""
    checked = check(Hostfile, served.hostfile(tree))
    if checked.value is None:
        return checked
    findings = (*_too_few(checked.value, checked.node), *_unused(checked.value, checked.node))
    if findings:
        return replace(checked, value=None, findings=(*checked.findings, *findings))
    return replace(checked, value=_with_path(checked.value, checked.node))


def _too_few(hostfile: Hostfile, node: Node) -> Iterator[Finding]:
    wanted, there = hostfile.minimum_hosts, len(hostfile.hosts)
    if wanted is None or wanted <= there:
        return
    where = place(node, ("minimum_hosts",))
    related = beside(node, ("hosts",), "the hosts stand here", where)
    yield where.finding(
        "contradiction",
        f"minimum_hosts is {wanted}, and there {'are' if there > 1 else 'is'} {there} in hosts",
        f"a whole number from 1 to {there}",
        related=related,
    )


def _unused(hostfile: Hostfile, node: Node) -> Iterator[Finding]:
    """What another launcher than the chosen one would heed."""
    if hostfile.launcher == "ssh":
        return
    hosts = range(len(hostfile.hosts))
    paths: list[Path] = [(key,) for key in _OF_SSH]
    paths += [("hosts", index, key) for index in hosts for key in _OF_SSH_HOSTS]
    for path in paths:
        here = given(node, *path)
        if here is None or (isinstance(here, Mapping) and not here.entries):
            continue
        where = key_place(node, path) or place(node, path)
        related = beside(node, ("launcher",), "the launcher is chosen here", where)
        yield where.finding(
            "contradiction",
            f"`{name_of(path)}` means nothing to the {hostfile.launcher} launcher",
            "launcher: ssh",
            related=related,
        )


def _with_path(hostfile: Hostfile, node: Node) -> Hostfile:
    written = hostfile.ssh.config
    if written is None or find(node, "ssh", "config") is None:
        return hostfile
    folder = os.path.dirname(place(node, ("ssh", "config")).document.name)  # noqa: PTH120
    path = os.path.expanduser(written)  # noqa: PTH111 as the two around it
    ssh = hostfile.ssh.model_copy(update={"config": display(folder, path)})
    return hostfile.model_copy(update={"ssh": ssh})
