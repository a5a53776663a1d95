# expect: lifetime=PASS
# A capture fails and another takes its place.
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
try:
    capture(lambda: (x * 2).sum().item())
except RuntimeError:
    print("refused")
torch.cuda.synchronize()
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
report(y)
