# expect: lifetime=FAIL
# As raw_launch, and the input is gone.
import torch
from _common import capture, full, grab, report
from cuda.bindings import runtime

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1, graph=torch.cuda.CUDAGraph(keep_graph=True))
error, executable = runtime.cudaGraphInstantiate(runtime.cudaGraph_t(graph.raw_cuda_graph()), 0)
pointer = x.data_ptr()
del x  # the freeing line
thief = grab(pointer, 50.0)
runtime.cudaGraphLaunch(executable, torch.cuda.current_stream().cuda_stream)
report(y)
