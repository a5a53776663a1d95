# expect: lifetime=PASS
# capture_begin and capture_end without the context manager, on a stream of the program's own.
import torch
from _common import full, report

x = full(3.0)
_ = x * 2 + 1
stream = torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
torch.cuda.synchronize()
with torch.cuda.stream(stream):
    graph.capture_begin()
    y = x * 2 + 1
    graph.capture_end()
torch.cuda.synchronize()
graph.replay()
report(y)
