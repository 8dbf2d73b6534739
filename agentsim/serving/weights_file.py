"""What tells a file of weights apart, wherever it lies."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from agentsim.config.models import LlamaCpp
from agentsim.errors import UserError
from agentsim.rpc.control import ModelFile
from agentsim.serving.llama_cpp import model_path

WHOLE_BYTES = 4 * 1024**3
"""Larger files are told by their beginning and end: reading them whole would take minutes."""
_END_BYTES = 64 * 1024**2
_BLOCK_BYTES = 1024**2


def weights(spec: LlamaCpp) -> ModelFile | None:
    """The file of a model, read whole; None when it cannot be."""
    try:
        path = model_path(spec.name)
        status = path.stat()
        return _read(path, status.st_size, status.st_mtime_ns)
    except (UserError, OSError):
        return None


@lru_cache(maxsize=16)
def _read(path: Path, size: int, mtime_ns: int) -> ModelFile:
    """Of one state of a file."""
    digest = hashlib.sha256()
    whole = size <= WHOLE_BYTES
    with path.open("rb") as file:
        for start, end in [(0, size)] if whole else [(0, _END_BYTES), (size - _END_BYTES, size)]:
            file.seek(start)
            while start < end and (block := file.read(min(_BLOCK_BYTES, end - start))):
                digest.update(block)
                start += len(block)
    return ModelFile(path.name, size, digest.hexdigest(), whole)
