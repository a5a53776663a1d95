# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The target of a copy from page-locked memory is freed.
import torch
from _common import N, capture, full, report

source = torch.full((N,), 5.0).pin_memory()
x, target = full(3.0), full(0.0)


def run():
    target.copy_(source, non_blocking=True)
    return x + 1


run()
torch.cuda.synchronize()
graph, y = capture(run)
graph.replay()
torch.cuda.synchronize()
del target  # the freeing line
graph.replay()
report(y)
