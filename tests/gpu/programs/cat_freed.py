# expect: lifetime=FAIL
# One of the concatenated tensors is gone.
import torch
from _common import capture, full, report

xs = [full(float(k)) for k in range(3)]
warm = torch.cat(xs)
graph, y = capture(lambda: torch.cat(xs))
del xs[1]  # the freeing line
graph.replay()
report(y)
