# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# The same, and the pool's memory has gone back to the driver.
import torch
from _common import capture, executable, full, launch, leave
from torch.cuda import CUDAGraph

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1, graph=CUDAGraph(keep_graph=True))
launch(made := executable(graph.raw_cuda_graph()))
torch.cuda.synchronize()
graph.reset()
del y
torch.cuda.empty_cache()
leave(lambda: launch(made))
