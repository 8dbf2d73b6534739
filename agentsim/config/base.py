"""What all file models share."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class FileModel(BaseModel):
    """A part of a file: frozen, strict, and unknown keys are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True
    )


Sweep = dict[str, list[Any]] | list[dict[str, Any]]
"""Values for keys of a scenario: a grid, or cells one by one."""
