# expect: lifetime=PASS
# Launched through cuda-bindings on a stream that is not the current one, many times without waiting: what orders itself by the
# current stream comes while the graph runs, and stays in the sum.
import torch
from _common import capture, full, report
from cuda.bindings import runtime

x = full(3.0)
_ = torch.sin(x * 2)


def long(value):
    for _ in range(100):
        value = torch.sin(value * 2)
    return value


total = full(0.0)
graph, _ = capture(lambda: total.add_(long(x)), graph=torch.cuda.CUDAGraph(keep_graph=True))
error, executable = runtime.cudaGraphInstantiate(runtime.cudaGraph_t(graph.raw_cuda_graph()), 0)
assert int(error) == 0
elsewhere = torch.cuda.Stream()
torch.cuda.synchronize()
for _ in range(64):
    assert int(runtime.cudaGraphLaunch(executable, elsewhere.cuda_stream)[0]) == 0
report(total)
runtime.cudaGraphExecDestroy(executable)
