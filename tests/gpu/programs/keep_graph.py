# expect: lifetime=PASS
# keep_graph=True, instantiated by hand.
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1, graph=torch.cuda.CUDAGraph(keep_graph=True))
graph.instantiate()
graph.replay()
report(y)
