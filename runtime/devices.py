"""GPUs by NVML: which this run would use, and whether they are free; no process is ever touched."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sgl_graph.analyzer.errors import GpuUnavailable
from sgl_graph.analyzer.serving_command import ServingCommand

#: Above these a GPU is in use by somebody: a bare context takes some hundred megabytes.
_BUSY_UTILISATION = 10
_BUSY_MEMORY_SHARE = 0.05


@dataclass(frozen=True)
class Gpu:
    """One GPU as it was found before the launch."""

    index: int
    uuid: str
    name: str
    memory_total: int
    memory_used: int
    utilisation: int | None
    processes: tuple[int, ...] = ()

    def busy(self) -> str | None:
        """Why it counts as busy, or None."""
        if self.processes:
            return f"processes {', '.join(map(str, self.processes))} use it"
        if self.memory_used > _BUSY_MEMORY_SHARE * self.memory_total:
            return f"{self.memory_used >> 20} MiB are in use"
        if self.utilisation is not None and self.utilisation > _BUSY_UTILISATION:
            return f"it is {self.utilisation} % utilised"
        return None

    def text(self) -> str:
        """For reports."""
        return f"{self.index}: {self.name}, {self.memory_total >> 20} MiB ({self.uuid})"


@dataclass(frozen=True)
class Devices:
    """The GPUs of a run, and the driver."""

    gpus: tuple[Gpu, ...] = ()
    driver: str | None = None
    visible: tuple[str, ...] = field(default=())


def visible_devices(*environments: Mapping[str, str]) -> str | None:
    """CUDA_VISIBLE_DEVICES as the server would see it: the first environment that sets it wins."""
    for environment in environments:
        if "CUDA_VISIBLE_DEVICES" in environment:
            return environment["CUDA_VISIBLE_DEVICES"]
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def gpu_count(command: ServingCommand) -> int:
    """How many GPUs the command takes on this node: tensor x pipeline, and replicas that do not share them."""

    def size(*flags: str) -> int:
        value = command.value(*flags)
        return int(value) if value and value.isdigit() else 1

    shared = command.values("--enable-dp-attention") is not None or command.value("--attn-dp-size") is not None
    replicas = 1 if shared else size("--dp-size", "--dp", "--data-parallel-size")
    tensor = size("--tp-size", "--tp", "--tensor-parallel-size")
    return tensor * size("--pp-size", "--pp", "--pipeline-parallel-size") * replicas


def check_devices(command: ServingCommand, visible: str | None, *, allow_busy: bool, nvml: Any = None) -> Devices:
    """The GPUs that the command would use.

    Args:
        command: The serving command; its sizes and base GPU decide which.
        visible: The value of CUDA_VISIBLE_DEVICES, None when unset.
        allow_busy: Whether GPUs in use are taken all the same.
        nvml: The module to ask; the installed `pynvml` by default.

    Raises:
        GpuUnavailable: NVML is missing or fails, there are too few GPUs, or one is busy.
    """
    if nvml is None:
        try:
            nvml = importlib.import_module("pynvml")
        except ImportError as error:
            raise GpuUnavailable(
                "the device check needs NVML, and pynvml is not installed",
                hint="pip install nvidia-ml-py; on an emulated device pass --device as the server takes it",
            ) from error
    try:
        nvml.nvmlInit()
    except Exception as error:
        raise GpuUnavailable(f"NVML: {error}", hint="sgl-graph doctor says what this host can do") from error
    try:
        everything = [_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount())]
        chosen = _choose(everything, command, visible)
        driver = nvml.nvmlSystemGetDriverVersion()
    except GpuUnavailable:
        raise
    except Exception as error:
        raise GpuUnavailable(f"NVML: {error}") from error
    finally:
        nvml.nvmlShutdown()
    for gpu in chosen:
        why = gpu.busy()
        if why and not allow_busy:
            raise GpuUnavailable(
                f"GPU {gpu.index} is busy: {why}", hint="wait, choose others with CUDA_VISIBLE_DEVICES, or --allow-busy"
            )
    return Devices(gpus=tuple(chosen), driver=_text(driver), visible=tuple(str(gpu.index) for gpu in chosen))


def _choose(everything: Sequence[Gpu], command: ServingCommand, visible: str | None) -> list[Gpu]:
    order = list(everything) if visible is None else []
    for token in (visible or "").split(","):
        token = token.strip()
        match = [g for g in everything if token and (token == str(g.index) or g.uuid.startswith(token))]
        if visible is not None and token:
            if not match:
                break  # CUDA ignores an unknown device and all after it
            order.append(match[0])
    base, step = command.value("--base-gpu-id"), command.value("--gpu-id-step")
    first = int(base) if base and base.isdigit() else 0
    stride = int(step) if step and step.isdigit() else 1
    needed = gpu_count(command)
    wanted = [first + i * stride for i in range(needed)]
    if wanted[-1] >= len(order):
        shown = f"CUDA_VISIBLE_DEVICES={visible}" if visible is not None else "this host"
        raise GpuUnavailable(f"the command takes {needed} GPUs, {shown} offers {len(order)}")
    return [order[i] for i in wanted]


def _gpu(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    try:
        utilisation = int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
    except Exception:  # noqa: BLE001 - not supported under MIG
        utilisation = None
    processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return Gpu(
        index=index,
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        name=_text(nvml.nvmlDeviceGetName(handle)),
        memory_total=int(memory.total),
        memory_used=int(memory.used),
        utilisation=utilisation,
        processes=tuple(sorted(int(p.pid) for p in processes)),
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
