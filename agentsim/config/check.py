"""Checks one tree against its model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from agentsim.config.codes import CODES
from agentsim.config.keys import NearMiss
from agentsim.config.served import Kept
from agentsim.config.translate import Problem, locate, meant, to_finding
from agentsim.config.tree import Node, Path, plain, renamed
from agentsim.errors import Finding

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Checked(Generic[M]):
    """What came of a check.

    Attributes:
        value: the validated model, None if there are findings.
        node: the tree, keys that were close to an absent one renamed to it.
        findings: what is wrong.
    """

    value: M | None
    node: Node
    findings: tuple[Finding, ...]


def check(model: type[M], kept: Kept) -> Checked[M]:
    """Check a tree; a key that is close to an absent one is taken for it."""
    node, findings = kept.node, list(kept.findings)
    while True:
        try:
            value = model.model_validate_json(json.dumps(plain(node)), strict=True)
        except ValidationError as error:
            errors = error.errors(include_url=False)
            problems = [
                problem
                for problem in locate(model, errors)
                if not any(_follows(problem, dropped) for dropped in kept.dropped)
            ]
        else:
            return Checked(None if findings else value, node, tuple(findings))
        misses: dict[tuple[Path, str], NearMiss] = {}
        for problem in problems:
            miss = meant(problem, node)
            if miss:
                misses.setdefault((miss.path[:-1], miss.meant), miss)
        if not misses:
            findings += [to_finding(problem, node) for problem in problems]
            return Checked(None, node, tuple(findings))
        # Each turn makes an absent key present, so there are few turns.
        for miss in misses.values():
            findings.append(miss.finding)
            node = renamed(node, miss.path, miss.meant)


def _follows(problem: Problem, dropped: Path) -> bool:
    """Whether a problem is only there because something was left out."""
    path = problem.path
    if path[: len(dropped)] == dropped:
        return True
    around = dropped[: len(path)] == path
    return around and (problem.kind in CODES or problem.kind.endswith("too_short"))
