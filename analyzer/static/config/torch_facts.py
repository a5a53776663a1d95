"""How device facts answer the questions that source asks of torch."""

from __future__ import annotations

from sgl_graph.analyzer.static.config.device import DeviceFacts
from sgl_graph.analyzer.static.config.possibilities import taint, unknown
from sgl_graph.analyzer.static.config.program import Instance
from sgl_graph.analyzer.static.config.values import ABSENT, Deps, External, Value

_DEVICE: Deps = frozenset({"device"})
# What the wheels that the releases pin are built for; only comparisons with older versions depend on it.
_CUDA_VERSION = "12.9"
_HIP_VERSION = "6.4.43482"
_TORCH_VERSION = "2.9.1"
_MIB = 1 << 20
#: Attributes of torch that only exist with a vendor's package.
_VENDOR_MODULES = {"npu": "npu", "hpu": "hpu", "musa": "musa"}
_AVAILABLE = {
    "torch.cuda.is_available": ("cuda", "hip", "musa"), "torch.xpu.is_available": ("xpu",),
    "torch.npu.is_available": ("npu",), "torch.hpu.is_available": ("hpu",), "torch.mps.is_available": ("mps",),
    "torch.backends.mps.is_available": ("mps",), "torch.musa.is_available": ("musa",),
}  # fmt: skip


def known(value: Value) -> Value:
    """A value that rests on the device."""
    return taint(value, _DEVICE)


def attribute(device: DeviceFacts | None, path: str) -> Value | None:
    """The value of `torch...` where the device decides it; ABSENT where there is no such attribute, None elsewhere."""
    name = path.removeprefix("torch.")
    if name == "__version__":
        return taint(_TORCH_VERSION, frozenset({"package:torch"}))
    if name in _VENDOR_MODULES:
        if device is None:
            return unknown(_DEVICE)
        return External(path) if device.kind == _VENDOR_MODULES[name] else ABSENT
    if name.startswith("version."):
        return _version(device, name.removeprefix("version."))
    return None


def _version(device: DeviceFacts | None, name: str) -> Value | None:
    if name not in ("cuda", "hip", "musa", "xpu", "rocm"):
        return None
    if device is None:
        return unknown(_DEVICE)
    if name == "musa":
        return known("4.3") if device.kind == "musa" else ABSENT
    versions = {"cuda": ("cuda", _CUDA_VERSION), "hip": ("hip", _HIP_VERSION), "rocm": ("hip", _HIP_VERSION)}
    if name in versions:
        kind, version = versions[name]
        return known(version if device.kind == kind else None)
    return known(None)


def call(device: DeviceFacts | None, path: str) -> Value | None:
    """What a call of `torch...` returns where the device decides it, else None."""
    if path in _AVAILABLE:
        return unknown(_DEVICE) if device is None else known(device.kind in _AVAILABLE[path])
    head, _, name = path.rpartition(".")
    if head not in ("torch.cuda", "torch.npu", "torch.xpu", "torch.hpu", "torch.musa"):
        return None
    if name == "is_initialized":
        return True  # either answer leads to the same device facts; this one without asking NVML
    if name not in (
        "get_device_capability",
        "get_device_name",
        "get_device_properties",
        "device_count",
        "mem_get_info",
    ):
        return None
    if device is None:
        return unknown(_DEVICE)
    if name == "get_device_capability":
        return unknown(_DEVICE) if device.capability is None else known(device.capability)
    if name == "get_device_name":
        return known(device.name) if device.name else unknown(_DEVICE)
    if name == "device_count":
        return unknown(_DEVICE) if device.count is None else known(device.count)
    if name == "mem_get_info":
        return unknown(_DEVICE)
    return properties(device)


def properties(device: DeviceFacts) -> Value:
    """`get_device_properties(...)`."""
    attrs: dict[str, Value] = {}
    if device.name:
        attrs["name"] = known(device.name)
    if device.capability is not None:
        attrs["major"], attrs["minor"] = known(device.capability[0]), known(device.capability[1])
    if device.cores is not None:
        attrs["multi_processor_count"] = known(device.cores)
    if device.memory is not None:
        attrs["total_memory"] = known(device.memory * _MIB)
    if device.architecture is not None:
        attrs["gcnArchName"] = known(device.architecture)
    return Instance(External("torch.cuda._CudaDeviceProperties"), attrs, _DEVICE)
