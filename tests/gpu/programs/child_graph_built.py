# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=child_graph_built_freed
# A parent built by hand launches two captured graphs as its children.
import torch
from _common import built, capture, full, launch, report
from torch.cuda import CUDAGraph

x = full(3.0)
_ = x * 2 + 1
first, h = capture(lambda: x * 2 + 1, graph=CUDAGraph(keep_graph=True))
second, y = capture(lambda: (h + 5) * 2, graph=CUDAGraph(keep_graph=True))
parent = built([first.raw_cuda_graph(), second.raw_cuda_graph()])
launch(parent)
torch.cuda.synchronize()
launch(parent)
report(y)
