# expect: lifetime=PASS
# One compiled function records a graph for each of several shapes, into one pool; outputs are rebound, not deleted.
import torch
from _common import report

torch.manual_seed(0)
weight = torch.randn(256, 256, device="cuda") / 16


@torch.compile(mode="reduce-overhead", dynamic=False)
def step(x):
    return torch.softmax(torch.relu(x @ weight) @ weight, 1)


for turn in range(4):
    for size in (8, 16, 32, 8):
        torch.compiler.cudagraph_mark_step_begin()
        out = step(torch.full((size, 256), 0.1 * turn, device="cuda"))
        report(out.clone())
