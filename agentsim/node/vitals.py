"""How this machine is: CPUs, memory, processes, GPUs."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
from dataclasses import dataclass
from typing import Any

import psutil

from agentsim.rpc.staying import GpuReport

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process uses.

    Attributes:
        cpu: share of one CPU since it was looked at last; 0 the first time.
        memory_bytes: resident.
    """

    cpu: float = 0.0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine as a whole; names as of `staying.NodeReport`."""

    hostname: str
    cpus: int
    cpu: float
    load: float
    memory_used_bytes: int
    memory_bytes: int


class Vitals:
    """Looks at the machine and at processes; shares are since the last look."""

    def __init__(self) -> None:
        psutil.cpu_percent()  # the first look has nothing to compare with
        self._processes: dict[int, psutil.Process] = {}

    def machine(self) -> Machine:
        """How the machine is now."""
        memory = psutil.virtual_memory()
        return Machine(
            hostname=socket.gethostname(),
            cpus=os.cpu_count() or 1,
            cpu=psutil.cpu_percent() / 100,
            load=os.getloadavg()[0],
            memory_used_bytes=memory.total - memory.available,
            memory_bytes=memory.total,
        )

    def process(self, pid: int) -> Usage:
        """What a process uses; nothing when it is gone."""
        try:
            if pid not in self._processes:
                self._processes[pid] = psutil.Process(pid)
            process = self._processes[pid]
            return Usage(process.cpu_percent() / 100, process.memory_info().rss)
        except psutil.Error:
            self._processes.pop(pid, None)
            return Usage()


def gpus() -> list[GpuReport]:
    """The machine's GPUs; none when there are none, or when nvidia-ml-py is not installed."""
    try:
        import pynvml
    except ImportError:
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        _log.debug("no GPUs: %s", error)
        return []
    try:
        return [_gpu(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()


def _gpu(nvml: Any, index: int) -> GpuReport:
    """One GPU; one that does not answer says why."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        name = nvml.nvmlDeviceGetName(handle)
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    except nvml.NVMLError as error:
        return GpuReport(index, "unknown", 0, 0, 0.0, f"does not answer: {error}")
    busy = 0.0
    with contextlib.suppress(nvml.NVMLError):
        busy = nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100
    return GpuReport(
        index=index,
        name=name if isinstance(name, str) else name.decode(),
        memory_used_bytes=int(memory.used),
        memory_bytes=int(memory.total),
        busy=busy,
        errors="; ".join(_errors(nvml, handle)),
    )


def _errors(nvml: Any, handle: Any) -> list[str]:
    """What is known to be wrong; a GPU that does not count its errors has none."""
    found = []
    with contextlib.suppress(nvml.NVMLError):
        wrong = nvml.nvmlDeviceGetTotalEccErrors(
            handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        )
        if wrong:
            found.append(f"{wrong} uncorrected memory errors since it was started")
    with contextlib.suppress(nvml.NVMLError):
        if nvml.nvmlDeviceGetRetiredPagesPendingStatus(handle):
            found.append("memory pages wait for a reset to be retired")
    with contextlib.suppress(nvml.NVMLError, AttributeError):
        _, _, pending, failed = nvml.nvmlDeviceGetRemappedRows(handle)
        if failed:
            found.append("rows of memory could not be replaced")
        elif pending:
            found.append("rows of memory wait for a reset to be replaced")
    return found
