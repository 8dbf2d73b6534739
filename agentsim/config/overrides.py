"""Values from the command line, set in the tree before it is checked."""

from __future__ import annotations

from agentsim.config.files import shown
from agentsim.config.masking import MASK, is_secret, mask_addresses
from agentsim.config.parse import parse
from agentsim.config.tree import (
    Document,
    Entry,
    Mapping,
    Node,
    Place,
    Scalar,
    Sequence,
    document,
    find,
    put,
)
from agentsim.errors import ConfigError, Finding

Override = tuple[str, str, str]
"""Dotted key, YAML text, and the flag that brought it."""


def split_set(text: str, flag: str = "--set") -> Override:
    """Read `KEY=VALUE` as `--set` takes it.

    Raises:
        ConfigError: there is no `=` or no key.
    """
    key, sign, value = text.partition("=")
    if sign and key.strip():
        return key.strip(), value, flag
    found = f"`{MASK}`" if is_secret(text) else shown(mask_addresses(text), 60)
    finding = Finding(
        "bad-override",
        f"{flag} takes KEY=VALUE, found {found}",
        flag,
        expected=f"for example {flag} model.temperature=0.5",
    )
    raise ConfigError((finding,))


def before(override: Override) -> str:
    """What stands before the value on the command line."""
    key, _, flag = override
    return f"{flag} {key}=" if flag == "--set" else f"{flag} "


def key_place(override: Override) -> Place:
    """Where the key stands on the command line: at the flag for one that is called like it."""
    key, text, flag = override
    where = document(flag, text, flag=before(override))
    return (
        Place(where, 0, len(flag) + 1, len(key))
        if flag == "--set"
        else Place(where, 0, 0, len(flag))
    )


def apply(node: Node, override: Override) -> tuple[Node, list[Finding]]:
    """The tree with one value set, or unchanged with findings."""
    key, text, flag = override
    text = text.encode("utf-8", "replace").decode("utf-8")
    start = before(override)
    where = document(flag, text, flag=start)
    steps = _steps(key, flag, where)
    if is_secret(key.rpartition(".")[2]):
        for line, content in enumerate(where.lines):
            first = len(start) if line == 0 else 0
            where.hide(Place(where, line, first, max(len(content) - first, 1)))
    if not all(name for name, _ in steps):
        place = Place(where, 0, len(flag) + 1, len(key))
        return node, [place.finding("bad-override", f"{shown(key, 60)} is not a dotted key")]
    value, findings = parse(text, where, offset=len(start))
    if value is None:
        if findings:
            return node, findings
        value = Scalar(None, "", False, Place(where, 0, len(start)))
    changed = put(node, steps, value)
    if changed is None:
        problem = f"{shown(key, 60)} goes into a list that has no such position"
        findings = [*findings, steps[-1][1].finding("bad-override", problem)]
    return changed or node, findings


def put_scalar(node: Node, key: str, value: str | int, flag: str) -> Node:
    """The tree with a top-level value set as it is, not read as YAML."""
    return put(node, ((key, flag_place(flag, value)),), flag_scalar(flag, value)) or node


def set_workers(node: Node | None, workers: int) -> Node:
    """A hostfile's tree with the number of workers of every host set."""
    flag = "--workers"
    here = flag_place(flag, workers)
    value = flag_scalar(flag, workers)
    root: Node = Mapping({}, here, flow=True) if node is None else node
    hosts = find(root, "hosts")
    if hosts is None:
        alone = Mapping({"workers": Entry(here, value)}, here, flow=True)
        return put(root, (("hosts", here),), Sequence((alone,), here, flow=True)) or root
    for index, host in enumerate(hosts.items if isinstance(hosts, Sequence) else ()):
        if isinstance(host, Mapping):
            steps = (("hosts", here), (str(index), here), ("workers", here))
            changed = put(root, steps, value)
            root = root if changed is None else changed
    return root


def flag_place(flag: str, value: str | int) -> Place:
    """Where a flag's value stands."""
    where = document(flag, str(value), flag=f"{flag} ")
    return Place(where, 0, len(flag) + 1, max(len(where.lines[0]) - len(flag) - 1, 1))


def flag_scalar(flag: str, value: str | int) -> Scalar:
    """A flag's value as a node."""
    return Scalar(value, str(value), isinstance(value, str), flag_place(flag, value))


def _steps(key: str, flag: str, where: Document) -> tuple[tuple[str, Place], ...]:
    """The names of a dotted key, each with its place behind the flag."""
    steps = []
    column = len(flag) + 1
    for name in key.split("."):
        if flag == "--set":
            place = Place(where, 0, column, max(len(name), 1))
        else:
            place = Place(where, 0, 0, len(flag))
        steps.append((name.strip(), place))
        column += len(name) + 1
    return tuple(steps)
