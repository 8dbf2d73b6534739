"""What two manifests differ in: files and versions, and what decides no result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from agentsim.results.difference import Difference, Layer, of_values

Data = Mapping[str, Any]

_TOLD = ("name", "description", "hosts", "population", "compare", "limits")
"""Fields of a scenario that decide no number: what the population file says is compared itself, and
a limit shows in the results when it ends a run."""
_SURROUNDINGS = ("platform", "host", "cpus", "created", "endpoints", "sources")
_WORDS = {"sources": "sources of agentsim"}


def files_layer(left: Data, right: Data) -> Layer:
    """Scenario and population, field by field, and the sources of a user's program."""
    mine, its = (_deciding(manifest) for manifest in (left, right))
    if replays(left, right) or replays(right, left):
        mine, its = (_without(fields, "model.") for fields in (mine, its))
    differences = _fields(mine, its)
    names = mine.keys() | its.keys()
    return Layer("files", len(names), len(differences), first=tuple(differences))


def versions_layer(left: Data, right: Data) -> Layer:
    """The program, Python, packages and files of models."""
    models = not (replays(left, right) or replays(right, left))
    mine, its = (_versions(manifest, models=models) for manifest in (left, right))
    differences = _fields(mine, its)
    return Layer(
        "versions", len(mine.keys() | its.keys()), len(differences), first=tuple(differences)
    )


def told(left: Data, right: Data) -> Iterator[Difference]:
    """What differs and decides no result: names, hosts, the plan, the machine."""
    mine, its = (_undeciding(manifest) for manifest in (left, right))
    yield from _fields(mine, its)
    if replays(left, right) or replays(right, left):
        yield of_values("model", _model(left), _model(right))
    elif not _fields(_deciding(left), _deciding(right)):
        texts = [sorted(_texts(manifest).values()) for manifest in (left, right)]
        if texts[0] != texts[1]:
            words = "the same, but for comments and layout"
            yield Difference("text of the files", words, words)


def replays(manifest: Data, other: Data) -> bool:
    """Whether a run replays the other one."""
    replayed = (manifest.get("replay") or {}).get("run_id")
    return replayed is not None and replayed == other.get("run_id")


def _deciding(manifest: Data) -> dict[str, Any]:
    scenario = dict(manifest.get("scenario") or {})
    for name in _TOLD:
        scenario.pop(name, None)
    population = {"population": manifest.get("population")} if manifest.get("population") else {}
    sources = {
        f"module {PurePath(path).name}": text
        for path, text in _texts(manifest).items()
        if path.endswith(".py")
    }
    return {**flat(scenario), **flat(population), **sources}


def _versions(manifest: Data, *, models: bool) -> dict[str, Any]:
    # A run that went on with another version has several.
    programs = [manifest.get("agentsim"), *(r.get("agentsim") for r in manifest.get("resumes", []))]
    plain = {
        "agentsim": ", ".join(dict.fromkeys(str(program) for program in programs)),
        "python": manifest.get("python"),
    }
    of_models = _models(manifest) if models else {}
    return {**plain, **flat(manifest.get("packages") or {}), **of_models}


def _models(manifest: Data) -> dict[str, Any]:
    """What tells models apart: their file, wherever it lies, or what their server says."""
    models: dict[str, str] = {}
    for name, hosts in (manifest.get("models") or {}).items():
        files = [host["file"] for host in hosts if host.get("file")]
        if digests := dict.fromkeys(str(file.get("sha256")) for file in files):
            models[f"model file of {name}"] = " ".join(digests)
        # A server of our own calls its model by the path of the file.
        said = [host.get("about") or {} for host in hosts if not host.get("file")]
        for key in ("answers_as", "fingerprint"):
            if words := dict.fromkeys(str(about[key]) for about in said if key in about):
                models[f"{name}: {key}"] = " ".join(words)
    return models


def _undeciding(manifest: Data) -> dict[str, Any]:
    scenario = manifest.get("scenario") or {}
    plan = manifest.get("plan") or {}
    hosts = plan.get("hosts") or []
    facts = {
        **{name: scenario.get(name) for name in _TOLD},
        **{_WORDS.get(name, name): manifest.get(name) for name in _SURROUNDINGS},
        "workers": sum(host.get("workers", 0) for host in hosts),
        "hostfile": manifest.get("hosts"),
    }
    return flat(facts)


def _model(manifest: Data) -> str:
    model = (manifest.get("scenario") or {}).get("model") or {}
    if manifest.get("replay"):
        return "replay"
    return " ".join(str(model[key]) for key in ("backend", "name") if key in model)


def _texts(manifest: Data) -> dict[str, str]:
    return {path: file.get("text", "") for path, file in (manifest.get("files") or {}).items()}


def _without(fields: Data, prefix: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if not name.startswith(prefix)}


def _fields(left: Data, right: Data) -> list[Difference]:
    names = [*left, *(name for name in right if name not in left)]
    return [
        of_values(name, left.get(name), right.get(name))
        for name in names
        if left.get(name) != right.get(name)
    ]


def flat(data: Data, before: str = "") -> dict[str, Any]:
    """A map of maps as one, by dotted keys; what is not set is left out."""
    result: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping) and value:
            result |= flat(value, f"{before}{key}.")
        elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
            result |= flat({str(i): item for i, item in enumerate(value)}, f"{before}{key}.")
        elif value is not None:
            result[f"{before}{key}"] = value
    return result
