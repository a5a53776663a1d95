# expect: lifetime=PASS
# A graph launched inside a capture becomes a child graph.
import torch
from _common import capture, full, report
from cuda.bindings import runtime

x = full(3.0)
_ = x * 2 + 1
inner, h = capture(lambda: x * 2 + 1, graph=torch.cuda.CUDAGraph(keep_graph=True))
error, executable = runtime.cudaGraphInstantiate(runtime.cudaGraph_t(inner.raw_cuda_graph()), 0)


def outer_body():
    stream = torch.cuda.current_stream().cuda_stream
    assert int(runtime.cudaGraphLaunch(executable, stream)[0]) == 0
    return h + 1


outer, y = capture(outer_body)
outer.replay()
report(y)
