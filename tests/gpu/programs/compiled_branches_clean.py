# expect: lifetime=PASS
# torch.compile records a tree of graphs: one call is followed by either of two others, and memory goes back and forth between them.
import torch
from _common import report

torch.manual_seed(0)
weights = [torch.randn(256, 256, device="cuda") / 16 for _ in range(3)]


@torch.compile(mode="reduce-overhead")
def head(x):
    return torch.relu(x @ weights[0]) * 2


@torch.compile(mode="reduce-overhead")
def left(x):
    return torch.sin(x @ weights[1]).sum(1, keepdim=True) + x


@torch.compile(mode="reduce-overhead")
def right(x):
    return torch.cos(x @ weights[2]) @ weights[1]


for step in range(12):
    torch.compiler.cudagraph_mark_step_begin()
    x = torch.full((32, 256), 0.1 * step, device="cuda")
    h = head(x)
    out = left(h) if step % 3 else right(h)
    if step % 4 == 3:
        out = right(out)
    report(out.clone())
    del h, out
