# expect: lifetime=INCOMPLETE
# A node is taken out of a clone before it is instantiated: what the rest reads was judged by nobody.
import torch
from _common import capture, executable, full, launch, report
from cuda.bindings import runtime

x, z = full(3.0), full(0.0)


def run():
    y = torch.sin(x * 2 + 1) * 3
    z.fill_(7.0)
    return y


run()
graph, y = capture(run, graph=torch.cuda.CUDAGraph(keep_graph=True))
error, clone = runtime.cudaGraphClone(runtime.cudaGraph_t(graph.raw_cuda_graph()))
error, nodes, count = runtime.cudaGraphGetNodes(clone, 16)
assert int(error) == 0 and count == 5
assert int(runtime.cudaGraphDestroyNode(nodes[4])[0]) == 0
made = executable(int(clone))
launch(made)
report(y)
