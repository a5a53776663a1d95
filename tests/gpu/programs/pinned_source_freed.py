# expect: lifetime=PASS numerical=FAIL coverage=PASS outside_guarantee=yes outside=1 class=outside-allocator
# The page-locked source of a copy is dropped: no device memory is, so it is listed and not judged.
import torch
from _common import N, capture, full, report

source = torch.full((N,), 5.0).pin_memory()
target = full(0.0)


def run():
    target.copy_(source, non_blocking=True)
    return target + 1


run()
torch.cuda.synchronize()
graph, y = capture(run)
graph.replay()
report(y)
del source
graph.replay()
report(target * 0)
