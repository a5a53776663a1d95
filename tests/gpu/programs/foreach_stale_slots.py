# expect: lifetime=PASS
# A multi-tensor kernel's by-value struct has slots that this launch does not use; an earlier launch used them.
import torch
from _common import capture, full, report

xs = [full(float(k)) for k in range(8)]
for _ in range(3):
    warm = torch._foreach_add(xs, 1.0)
del warm
graph, ys = capture(lambda: torch._foreach_add(xs[:3], 1.0))
del xs[3:]
spoil = [full(9.0) for _ in range(5)]
graph.replay()
report(*ys)
