"""Which memory a component's operands can come from, by the allocation interfaces that its module calls."""

from __future__ import annotations

import re

#: Text of an allocation interface, what it gives, and whether torch's caching allocator owns it.
_SOURCES: tuple[tuple[re.Pattern[bytes], str], ...] = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (rb"ncclMemAlloc|CUDAPluggableAllocator\(", "pluggable allocator (NCCL or other), not the caching allocator"),
        (rb"symm_mem\.(?:empty|rendezvous)|_SymmetricMemory|multimem_all|SymmMem\w*\(", "symmetric memory, not the caching allocator"),
        (rb"nvshmem_\w+|NVSHMEM", "NVSHMEM heap, not the caching allocator"),
        (rb"\bdeep_ep\b|\bBuffer\(|nixl_ep|\bpplx_kernels\b", "buffer of an expert-parallel library, not the caching allocator"),
        (rb"cudaMalloc\b|cudaIpc|ipc_handle|IpcMemHandle|open_mem_handle", "cudaMalloc with IPC handles, not the caching allocator"),
        (rb"cuMemMap|cuMemCreate|VmmReservation|cuMemAddressReserve", "virtual memory management, pages mapped apart from addresses"),
        (rb"torch_memory_saver\.|memory_saver_adapter\.region", "memory saver: addresses stay, pages are swapped"),
        (rb"RawGpuBuffer|mscclpp", "MSCCL++ buffers, not the caching allocator"),
        (rb"pin_memory\s*=\s*True|\.pin_memory\(", "pinned host memory"),
    )
)  # fmt: skip
#: Pointers that are written into a table after the capture.
_LATE_POINTERS = re.compile(rb"graph_params|register_graph_buffers|register_graph_inputs|get_graph_buffer_ipc_meta")
CACHING = "caching allocator"


def memory_of(text: bytes) -> tuple[str, bool, bool]:
    """Memory that the classes of a module hand to kernels.

    Returns:
        A sentence, whether some of it is out of the caching allocator's sight, and whether pointers are filled in
        after the capture.
    """
    found = [words for pattern, words in _SOURCES if pattern.search(text)]
    late = _LATE_POINTERS.search(text) is not None
    outside = [words for words in found if words != "pinned host memory"]
    parts = [CACHING, *found] if found else [CACHING]
    if late:
        parts.append("pointers registered after the capture")
    return "; ".join(parts), bool(outside) or late, late
