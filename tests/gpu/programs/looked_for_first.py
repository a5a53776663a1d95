# expect: lifetime=FAIL
# The program asks whether torch and cuda-bindings are installed before it imports them, as many do.
import importlib.util

print(importlib.util.find_spec("torch") is not None, importlib.util.find_spec("cuda.bindings.runtime") is not None)
print(type(importlib.util.find_spec("torch").loader.get_filename("torch")).__name__)
import torch
from _common import capture, executable, full, launch, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1, graph=torch.cuda.CUDAGraph(keep_graph=True))
graph.replay()
made = executable(graph.raw_cuda_graph())
torch.cuda.synchronize()
del x  # the freeing line
launch(made)
report(y * 0)
