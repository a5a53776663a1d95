# expect: lifetime=PASS
# The executable is made and launched through cuda-bindings, by names bound before and after the import.
import torch
from _common import capture, full, report
from cuda.bindings import runtime
from cuda.bindings.runtime import cudaGraphInstantiateWithFlags, cudaGraphLaunch

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1, graph=torch.cuda.CUDAGraph(keep_graph=True))
error, executable = cudaGraphInstantiateWithFlags(runtime.cudaGraph_t(graph.raw_cuda_graph()), 0)
assert int(error) == 0
for _ in range(3):
    assert int(cudaGraphLaunch(executable, torch.cuda.current_stream().cuda_stream)[0]) == 0
report(y)
runtime.cudaGraphExecDestroy(executable)
