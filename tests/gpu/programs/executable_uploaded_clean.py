# expect: lifetime=PASS
# The executable's handle is asked for to upload it ahead; the graph is replayed as ever.
import torch
from _common import capture, full, report
from cuda.bindings import runtime

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
made = runtime.cudaGraphExec_t(graph.raw_cuda_graph_exec())
print(int(runtime.cudaGraphUpload(made, torch.cuda.current_stream().cuda_stream)[0]))
graph.replay()
report(y)
