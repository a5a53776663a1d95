"""The device-graph interfaces of the libraries that a serving system calls: access paths, and what each does."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: torch, and the emulated device of the fixtures, which has torch's interface.
_LIBRARY = r"(?:torch|emugraph)"
_DEVICE_MODULE = (
    rf"(?:{_LIBRARY}\.(?P<device>cuda|npu|xpu|musa|mlu|hpu|accelerator)|(?P<plugin>torch_npu|torch_musa|torch_xpu)"
    r"(?:\.(?:npu|musa|xpu))?|(?P<any>torch\.get_device_module\(\)))(?:\.graphs)?"
)
_MODULE_MEMBER = re.compile(rf"^{_DEVICE_MODULE}\.(?P<name>\w+)$")
_INSTANCE_MEMBER = re.compile(rf"^{_DEVICE_MODULE}\.(?P<type>\w+)\(\)\.(?P<name>\w+)$")
_INSTANCE = re.compile(rf"^{_DEVICE_MODULE}\.(?P<type>\w*Graph)\(\)$")
_POOL = re.compile(
    rf"^{_DEVICE_MODULE}\.graph_pool_handle\(\)$|^{_DEVICE_MODULE.replace('?P<', '?P<x')}\.\w*Graph\(\)\.pool\(\)$"
)
_CUDA_ROOTS = ("cuda.", "hip.", "cupy.")
_CUDA_CALL = re.compile(r"^(?:cuda|cu|hip)(?P<rest>Graph\w+|StreamBeginCapture\w*|StreamEndCapture)$")

_PLUGIN_DEVICES = {"torch_npu": "npu", "torch_musa": "musa", "torch_xpu": "xpu"}

#: Methods of a graph object, by role. `instantiate` makes an executable; `reset` and `update` end or change one.
GRAPH_METHODS = {
    "capture_begin": "capture",
    "capture_end": "capture",
    "replay": "replay",
    "instantiate": "update",
    "reset": "update",
    "update": "update",
    "pool": "pool",
}
#: Method names that only graph interfaces have: they count even where the receiver cannot be typed.
UNMISTAKABLE = {"capture_begin": "capture", "capture_end": "capture", "graph_pool_handle": "pool"}


@dataclass(frozen=True, slots=True)
class Api:
    """What a call of an external access path does to a device graph.

    `device` is `any` for a device module chosen at run time; `form` names the kind of interface.
    """

    role: str
    form: str
    device: str


def api_of(path: str) -> Api | None:
    """The graph interface behind an access path that is called, or None."""
    match = _INSTANCE_MEMBER.match(path)
    if match is not None and match["type"].endswith("Graph"):
        role = GRAPH_METHODS.get(match["name"])
        return Api(role, match["name"], _device(match)) if role else None
    match = _MODULE_MEMBER.match(path)
    if match is not None:
        return _module_member(match["name"], _device(match))
    if path.startswith(_CUDA_ROOTS):
        return _cuda_call(path.rsplit(".", 1)[-1])
    if path.startswith("torch_memory_saver") and path.endswith(".cuda_graph"):
        return Api("capture", "saver-context", "any")
    if path.startswith("torch_memory_saver") and path.endswith(".region"):
        return Api("pool", "saver-region", "any")
    if path.startswith("torchair.") and path.endswith("get_npu_backend"):
        return Api("capture", "compiler", "npu")
    return None


def is_graph(tag: str) -> str | None:
    """The device of a value that is a device-graph object, else None."""
    match = _INSTANCE.match(tag)
    return _device(match) if match is not None else None


def is_pool(tag: str) -> bool:
    """Whether a value is the handle of a graph memory pool."""
    return _POOL.match(tag) is not None


def _device(match: re.Match[str]) -> str:
    if match["any"]:
        return "any"
    return match["device"] or _PLUGIN_DEVICES[match["plugin"]]


def _module_member(name: str, device: str) -> Api | None:
    if name.endswith("Graph") and name != "Graph":
        return Api("capture", "constructor", device)
    if name == "graph":
        return Api("capture", "context", device)
    if name == "make_graphed_callables":
        return Api("capture", "graphed-callables", device)
    if name == "graph_pool_handle":
        return Api("pool", "handle", device)
    if name in ("MemPool", "use_mem_pool"):
        return Api("pool", "memory-pool", device)
    return None


def _cuda_call(name: str) -> Api | None:
    match = _CUDA_CALL.match(name)
    if match is None:
        return None
    rest = match["rest"]
    if rest.startswith("Stream"):
        return Api("capture", "stream-capture", "cuda")
    if rest in ("GraphLaunch", "GraphLaunch_ptsz"):
        return Api("replay", "exec-launch", "cuda")
    if rest.startswith(("GraphInstantiate", "GraphExec", "GraphDestroy", "GraphUpload")):
        return Api("update", "exec", "cuda")
    if rest.startswith(("GraphCreate", "GraphAdd")):
        return Api("capture", "node-by-node", "cuda")
    return None
