"""How to repeat a run: the command, and what it ran with."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

Data = Mapping[str, Any]

_FLAGS = ("agents", "sessions", "rounds", "seed")


def command(manifest: Data) -> str:
    """What to type; empty when the manifest names no file.

    As the user typed it where that was recorded; else with the numbers spelled out that the
    command line may have changed.
    """
    if manifest.get("command"):
        return str(manifest["command"])
    file = next(iter(manifest.get("files") or {}), None)
    if file is None:
        return ""
    scenario = manifest.get("scenario") or {}
    flags = [f"--{flag} {scenario[flag]}" for flag in _FLAGS if scenario.get(flag) is not None]
    return " ".join(["agentsim run", shlex.quote(str(file)), *flags])


def facts(manifest: Data) -> dict[str, str]:
    """What the run ran with, by name."""
    scenario = manifest.get("scenario") or {}
    model = scenario.get("model") or {}
    packages = manifest.get("packages") or {}
    rows: dict[str, Any] = {
        "seed": (manifest.get("seeds") or {}).get("scenario", scenario.get("seed")),
        "agents x rounds x sessions": _size(scenario),
        "game": _pairs(manifest.get("game")),
        "prompt": scenario.get("prompt"),
        "memory": scenario.get("memory"),
        "model": _pairs(model),
        "replies": _pairs(scenario.get("replies")),
        "read as": manifest.get("reply_format"),
        "limits": _pairs(scenario.get("limits")),
        "changed for this run": ", ".join(manifest.get("overrides") or []),
        "model servers": ", ".join(manifest.get("endpoints") or []),
        "weights": _weights(manifest),
        "agentsim": manifest.get("agentsim"),
        "python": manifest.get("python"),
        "packages": ", ".join(f"{name} {version}" for name, version in packages.items()),
        "machine": " · ".join(
            str(manifest[key]) for key in ("host", "platform") if manifest.get(key)
        ),
        "started": manifest.get("created"),
        "run": manifest.get("run_id"),
    }
    return {name: str(value) for name, value in rows.items() if value not in (None, "", "{}")}


def _weights(manifest: Data) -> str:
    """The files of weights that were loaded, by model."""
    known = {
        f"{name}: {file['name']} (SHA-256 {file['sha256']}{'' if file['whole'] else ', in part'})"
        for name, hosts in (manifest.get("models") or {}).items()
        for host in hosts
        if (file := host.get("file"))
    }
    return ", ".join(sorted(known))


def hashes(manifest: Data) -> dict[str, list[str]]:
    """The files that were read, with their SHA-256."""
    files = manifest.get("files") or {}
    return {
        "file": list(files),
        "SHA-256": [str((file or {}).get("sha256", "")) for file in files.values()],
    }


def _size(scenario: Data) -> str:
    sizes = [scenario.get(key) for key in ("agents", "rounds", "sessions")]
    return "" if None in sizes else " x ".join(f"{size:,}" for size in sizes)


def _pairs(data: Any) -> str:
    """A part of a file on one line, as it would be written there; what is not set left out."""
    if not isinstance(data, Mapping):
        return "" if data is None else str(data)
    return ", ".join(f"{key}: {_flow(value)}" for key, value in data.items() if value is not None)


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + _pairs(value) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.10g}" if isinstance(value, float) else str(value)
