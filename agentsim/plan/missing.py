"""What this machine lacks for a run. It looks, and starts and connects to nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agentsim import serving
from agentsim.config import Loaded, LoadedWorkflow
from agentsim.config.models import LANGUAGE_MODELS, AnsweringModel
from agentsim.errors import UserError
from agentsim.plan.forecast import Forecast, ModelForecast, writer_of
from agentsim.serving import llama_cpp


def missing(loaded: Loaded | LoadedWorkflow) -> list[str]:
    """Packages, model files and keys that are not there, one sentence each."""
    models: list[AnsweringModel] = []
    problems: list[str] = []
    writer, model = writer_of(loaded), loaded.scenario.model
    if writer is not None:
        models.append(writer.model)
    if isinstance(model, LANGUAGE_MODELS):
        models.append(model)
    for model in models:
        try:
            serving.check(model)
        except UserError as error:
            problems.append(str(error))
    if str(loaded.hostfile.launcher) == "ssh" and shutil.which("ssh") is None:
        problems.append("the ssh launcher needs the program `ssh`, which is not here")
    return list(dict.fromkeys(problems))


def weighed(coming: Forecast) -> Forecast:
    """A forecast with the sizes of the models' files, where they are here."""
    models = tuple(replace(model, weights_bytes=_weights(model)) for model in coming.models)
    return replace(coming, models=models)


def _weights(model: ModelForecast) -> int | None:
    if model.backend != "llama_cpp":
        return None
    try:
        return llama_cpp.model_path(model.name).stat().st_size
    except (UserError, OSError):
        return None


def doubts(coming: Forecast, folder: Path) -> Iterator[str]:
    """What may go wrong on this machine, one sentence each.

    Args:
        coming: what the run will need.
        folder: where its directory will be; its parents count if it is not there.
    """
    cpus = os.cpu_count()
    workers = sum(host.workers for host in coming.hosts)
    if coming.launcher == "local" and cpus is not None and workers > cpus:
        yield f"{workers} workers on this machine, which has {cpus} CPUs"
    need = max(coming.disk_bytes or 0, coming.disk_most_bytes or 0)
    free = _free_bytes(folder)
    if free is not None and need > free:
        yield f"the disk of {folder} has {free:,} bytes left, and the run may take {need:,}"
    room = _free_memory_bytes() if coming.launcher == "local" else None
    memory = 0 if coming.memory is None else coming.memory["total"]
    if room is not None and memory > room:
        wanted = f"the run is expected to take {memory:,}"
        yield f"this machine has {room:,} bytes of memory available, and {wanted}"


def _free_memory_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _free_bytes(folder: Path) -> int | None:
    for path in (folder.absolute(), *folder.absolute().parents):
        if path.is_dir():
            try:
                return shutil.disk_usage(path).free
            except OSError:
                return None
    return None
