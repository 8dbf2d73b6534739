"""What to tell a user whose value cannot travel."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Collection
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CoroutineType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

import numpy as np

from agentsim.actors.shapes import shape_of
from agentsim.actors.wire import Refused

_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType)

_BY_TYPE: Final[tuple[tuple[Any, str], ...]] = (
    (_FUNCTIONS, "is a function; pass its name, and let the method look it up"),
    (type, "is a class; pass its name, and let the method look it up"),
    (ModuleType, "is a module; pass its name"),
    ((GeneratorType, AsyncGeneratorType), "is a generator; pass a list"),
    (CoroutineType, "is a coroutine; await it and pass the result"),
    (asyncio.Future, "is a task or future; await it and pass the result"),
    (io.IOBase, "is an open file; pass its path, or what is in it"),
    (memoryview, "is a memoryview; pass bytes"),
)

_BY_MODULE: Final = {
    "pandas": "pass .to_numpy(), .to_dict(…) or a standard type",
    "polars": "pass .to_numpy(), .to_dict(…) or a standard type",
    "pyarrow": "pass .to_numpy() or .to_pylist()",
    "torch": "pass .numpy()",
    "pydantic": "pass .model_dump()",
}

_BUILTINS = (dict, list, tuple, set, frozenset, str, bytes, bytearray, int, float, complex)


def refuse(value: Any, kind: type, modules: Collection[str]) -> Refused:
    """Why a value of a class without a shape does not travel, and what to do instead."""
    for types, reason in _BY_TYPE:
        if isinstance(value, types):
            return Refused(reason)
    name = f"{kind.__module__}:{kind.__qualname__}"
    if isinstance(value, BaseException):
        return Refused(f"is an exception ({name}); raise it, or pass its text")
    if isinstance(value, np.ndarray):
        return Refused(f"is a {name}, which would arrive as a plain array; pass numpy.array(…)")
    if isinstance(value, np.generic):
        return Refused(f"is a {name}, which would lose its type; pass .item()")
    if hasattr(kind, "to_dist"):
        return Refused(f"is a {name} that is not on a worker; call its .to_dist(…) first")
    for base in kind.__mro__:
        advice = _BY_MODULE.get(base.__module__.partition(".")[0])
        if advice:
            return Refused(f"is a {name}; {advice}")
    try:
        shape_of(kind, modules)
    except Refused as error:
        builtin = next((base for base in _BUILTINS if isinstance(value, base)), None)
        if builtin is not None and not hasattr(kind, "_fields"):
            plain = builtin.__name__
            return Refused(f"is a {name}, which would arrive as {plain}; pass {plain}(…)")
        return error
    return Refused(f"is a {name}, which does not travel")
