# expect: lifetime=PASS
# The same of the concatenation kernel.
import torch
from _common import capture, full, report

xs = [full(float(k)) for k in range(8)]
for _ in range(3):
    warm = torch.cat(xs)
del warm
graph, y = capture(lambda: torch.cat(xs[:3]))
del xs[3:]
spoil = [full(9.0) for _ in range(5)]
graph.replay()
report(y)
