# expect: lifetime=PASS
# The graph object is reset, its input replaced, and captured again before it replays.
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
report(y)
graph.reset()
del x, y
x = torch.full((1 << 21,), 4.0, device="cuda")
graph, y = capture(lambda: x * 2 + 1, graph=graph)
graph.replay()
report(y)
