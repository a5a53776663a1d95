# expect: lifetime=FAIL
# cuda-bindings are imported before torch, and their functions kept where no module's name leads.
from cuda.bindings import runtime


class Launcher:
    functions = {"instantiate": runtime.cudaGraphInstantiate, "launch": runtime.cudaGraphLaunch}


import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1, graph=torch.cuda.CUDAGraph(keep_graph=True))
graph.replay()
error, made = Launcher.functions["instantiate"](runtime.cudaGraph_t(graph.raw_cuda_graph()), 0)
torch.cuda.synchronize()
del x  # the freeing line
print(int(Launcher.functions["launch"](made, torch.cuda.current_stream().cuda_stream)[0]))
report(y * 0)
