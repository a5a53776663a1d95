# expect: lifetime=PASS
# Copies from and to page-locked memory, a memset and a device copy are nodes of the graph.
import torch
from _common import N, capture, full, report

source = torch.full((N,), 5.0).pin_memory()
target = torch.empty(N).pin_memory()
x = full(3.0)


def run():
    x.copy_(source, non_blocking=True)
    y = torch.zeros_like(x)
    y.copy_(x)
    target.copy_(y, non_blocking=True)
    return y


run()
torch.cuda.synchronize()
graph, y = capture(run)
graph.replay()
report(y, target)
