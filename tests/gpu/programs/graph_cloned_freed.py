# expect: lifetime=FAIL
# As graph_cloned_clean, and the input is gone.
import torch
from _common import capture, executable, full, grab, launch, report
from cuda.bindings import runtime

x = full(3.0)
_ = torch.sin(x * 2 + 1)
graph, y = capture(lambda: torch.sin(x * 2 + 1) * 3, graph=torch.cuda.CUDAGraph(keep_graph=True))
error, clone = runtime.cudaGraphClone(runtime.cudaGraph_t(graph.raw_cuda_graph()))
made = executable(int(clone))
launch(made)
pointer = x.data_ptr()
torch.cuda.synchronize()
del x  # the freeing line
thief = grab(pointer, 50.0)
launch(made)
report(y)
