# expect: lifetime=FAIL
# The input loses its last owner before the capture has ended.
import torch
from _common import full, report

x = full(3.0)
_ = x * 2 + 1
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2 + 1
    del x  # the freeing line
graph.replay()
report(y)
