# expect: lifetime=PASS
# A clone of a captured graph is instantiated and launched; its temporaries are those of the graph that it was cloned from.
import torch
from _common import capture, executable, full, launch, report
from cuda.bindings import runtime

x = full(3.0)
_ = torch.sin(x * 2 + 1)
graph, y = capture(lambda: torch.sin(x * 2 + 1) * 3, graph=torch.cuda.CUDAGraph(keep_graph=True))
error, clone = runtime.cudaGraphClone(runtime.cudaGraph_t(graph.raw_cuda_graph()))
made = executable(int(clone))
for value in (1.0, 2.0):
    x.fill_(value)
    launch(made)
    report(y)
runtime.cudaGraphDestroy(clone)
launch(made)
report(y)
