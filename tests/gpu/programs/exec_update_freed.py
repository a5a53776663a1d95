# expect: lifetime=FAIL
# The executable is updated to a graph whose input was freed.
import torch
from _common import capture, full, report
from cuda.bindings import runtime

x, z = full(3.0), full(4.0)
_ = x * 2 + 1
g1, y1 = capture(lambda: x * 2 + 1, graph=torch.cuda.CUDAGraph(keep_graph=True))
g2, y2 = capture(lambda: z * 2 + 1, graph=torch.cuda.CUDAGraph(keep_graph=True))
raw = [runtime.cudaGraph_t(g.raw_cuda_graph()) for g in (g1, g2)]
error, executable = runtime.cudaGraphInstantiate(raw[0], 0)
del z  # the freeing line
runtime.cudaGraphLaunch(executable, torch.cuda.current_stream().cuda_stream)
assert int(runtime.cudaGraphExecUpdate(executable, raw[1])[0]) == 0
runtime.cudaGraphLaunch(executable, torch.cuda.current_stream().cuda_stream)
report(y1, y2)
