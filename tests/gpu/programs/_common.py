"""What the programs share: a size that gives each tensor a segment of its own, and reports that can be compared bit by bit."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch

N = 1 << 22


def full(value: float) -> torch.Tensor:
    return torch.full((N,), value, device="cuda")


def grab(pointer: int, value: float) -> list[torch.Tensor]:
    """Allocate until the freed address is handed out again."""
    kept: list[torch.Tensor] = []
    for _ in range(64):
        kept.append(full(value))
        if kept[-1].data_ptr() == pointer:
            return kept
    raise SystemExit("the address was not handed out again")


def report(*tensors: torch.Tensor) -> None:
    """Print a digest of the tensors' bytes."""
    torch.cuda.synchronize()
    for tensor in tensors:
        flat = tensor.detach().contiguous().view(torch.uint8).cpu().numpy().tobytes()
        print(hashlib.sha256(flat).hexdigest()[:16])


def capture(function, *, pool=None, graph=None):
    graph = graph or torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        out = function()
    return graph, out


def embed(raw) -> None:
    """Make a captured graph a child node of the graph that the current stream is capturing."""
    from cuda.bindings import runtime

    stream = torch.cuda.current_stream().cuda_stream
    _, _, graph, dependencies, _, count = _done(runtime.cudaStreamGetCaptureInfo(stream))
    (node,) = _done(runtime.cudaGraphAddChildGraphNode(graph, dependencies, count, runtime.cudaGraph_t(int(raw))))
    replace = runtime.cudaStreamUpdateCaptureDependenciesFlags.cudaStreamSetCaptureDependencies
    _done(runtime.cudaStreamUpdateCaptureDependencies(stream, [node], None, 1, int(replace)))


def built(children):
    """An executable of a graph made by hand that runs captured graphs one after another."""
    from cuda.bindings import runtime

    (parent,) = _done(runtime.cudaGraphCreate(0))
    before = []
    for raw in children:
        child = runtime.cudaGraph_t(int(raw))
        before = list(_done(runtime.cudaGraphAddChildGraphNode(parent, before, len(before), child)))
    return executable(int(parent))


def executable(raw):
    from cuda.bindings import runtime

    return _done(runtime.cudaGraphInstantiate(runtime.cudaGraph_t(int(raw)), 0))[0]


def launch(made) -> None:
    from cuda.bindings import runtime

    _done(runtime.cudaGraphLaunch(made, torch.cuda.current_stream().cuda_stream))


def _done(result):
    """What a call of cuda-bindings returned beside its status, which must be success."""
    if int(result[0]):
        raise SystemExit(f"cuda-bindings: {result[0]!r}")
    return result[1:]


def leave(call) -> None:
    """Run what may end the CUDA context, and leave before a destructor trips on it; the footer is written on the way."""
    try:
        call()
        torch.cuda.synchronize()
        print("CUDA-error expected, none came", flush=True)
    except (RuntimeError, SystemExit) as error:
        print(f"CUDA-error: {str(error).splitlines()[0]}", flush=True)
    os._exit(0)


def plugged():
    """An allocator of our own, which takes memory from the driver."""
    folder = tempfile.mkdtemp()
    source, library = os.path.join(folder, "plugged.c"), os.path.join(folder, "plugged.so")
    with open(source, "w") as file:
        file.write(
            "#include <stddef.h>\n"
            "extern int cuMemAlloc_v2(unsigned long long*, size_t);\n"
            "extern int cuMemFree_v2(unsigned long long);\n"
            "void* take(ptrdiff_t n, int device, void* stream) { unsigned long long p = 0; return cuMemAlloc_v2(&p, n) ? 0 : (void*)p; }\n"
            "void give(void* p, ptrdiff_t n, int device, void* stream) { cuMemFree_v2((unsigned long long)p); }\n"
        )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
    return torch.cuda.memory.CUDAPluggableAllocator(library, "take", "give")
