"""What a node says of its machine."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from agentsim.node.vitals import Vitals, gpus


class NVMLError(Exception):
    pass


def nvml(**functions: Any) -> SimpleNamespace:
    """Stands for nvidia-ml-py: one healthy GPU, unless functions say otherwise."""

    def unknown(*_: object) -> None:
        raise NVMLError("not supported")

    healthy = {
        "NVMLError": NVMLError,
        "NVML_MEMORY_ERROR_TYPE_UNCORRECTED": 1,
        "NVML_VOLATILE_ECC": 0,
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda handle: "NVIDIA H200",
        "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=5, total=9),
        "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=40),
        "nvmlDeviceGetTotalEccErrors": unknown,
        "nvmlDeviceGetRetiredPagesPendingStatus": unknown,
        "nvmlDeviceGetRemappedRows": unknown,
    }
    return SimpleNamespace(**(healthy | functions))


def fail(*_: object) -> None:
    raise NVMLError("GPU is lost")


@pytest.mark.parametrize(
    ("functions", "errors"),
    [
        ({}, ""),
        ({"nvmlDeviceGetTotalEccErrors": lambda *_: 0}, ""),
        ({"nvmlDeviceGetTotalEccErrors": lambda *_: 3}, "3 uncorrected memory errors"),
        ({"nvmlDeviceGetRetiredPagesPendingStatus": lambda _: 1}, "wait for a reset"),
        ({"nvmlDeviceGetRemappedRows": lambda _: (1, 0, 0, 0)}, ""),
        ({"nvmlDeviceGetRemappedRows": lambda _: (1, 0, 0, 1)}, "could not be replaced"),
        ({"nvmlDeviceGetUtilizationRates": fail}, ""),
        ({"nvmlDeviceGetMemoryInfo": fail}, "does not answer: GPU is lost"),
    ],
)
def test_errors_of_a_gpu_are_told(
    monkeypatch: pytest.MonkeyPatch, functions: dict[str, Any], errors: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(**functions))
    (gpu,) = gpus()
    assert gpu.errors.startswith(errors) or errors in gpu.errors
    assert bool(gpu.errors) == bool(errors)


def test_a_machine_without_gpus_or_their_package_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlInit=fail))
    assert gpus() == []
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpus() == []


def test_processes_and_the_machine_are_looked_at() -> None:
    vitals = Vitals()
    machine = vitals.machine()
    assert machine.cpus >= 1
    assert 0 < machine.memory_used_bytes < machine.memory_bytes
    assert vitals.process(os.getpid()).memory_bytes > 2**20
    assert vitals.process(2**22 + 1).memory_bytes == 0
