"""What the programs share: a size that gives each tensor a segment of its own, and reports that can be compared bit by bit."""

import hashlib

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
