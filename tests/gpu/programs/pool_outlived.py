# expect: lifetime=!PASS numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# An executable made by hand outlives the graph object that held its pool.
import torch
from _common import capture, executable, full, launch, report
from torch.cuda import CUDAGraph

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1, graph=CUDAGraph(keep_graph=True))
launch(made := executable(graph.raw_cuda_graph()))
torch.cuda.synchronize()
graph.reset()
launch(made)
report(x)
