# expect: lifetime=PASS
# One executable is updated to each of several captured graphs before its launch, as deduplicating servers do.
import torch
from _common import capture, full, report
from cuda.bindings import runtime

x = full(3.0)
_ = x * 2 + 1
pairs = [capture(lambda k=k: x * k + 1, graph=torch.cuda.CUDAGraph(keep_graph=True)) for k in (2, 3)]
raw = [runtime.cudaGraph_t(g.raw_cuda_graph()) for g, _ in pairs]
error, executable = runtime.cudaGraphInstantiate(raw[0], 0)
for i in (0, 1, 0, 1):
    assert int(runtime.cudaGraphExecUpdate(executable, raw[i])[0]) == 0
    runtime.cudaGraphLaunch(executable, torch.cuda.current_stream().cuda_stream)
    report(pairs[i][1])
