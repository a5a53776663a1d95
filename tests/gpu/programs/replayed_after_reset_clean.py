# expect: lifetime=PASS
# The graph is reset and its input goes; a replay is refused, so the program captures anew.
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
torch.cuda.synchronize()
graph.reset()
del y
x = full(4.0)
try:
    graph.replay()
except RuntimeError as error:
    print(str(error).splitlines()[0])
    graph, y = capture(lambda: x * 2 + 1, graph=graph)
graph.replay()
report(y)
