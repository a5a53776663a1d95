# expect: lifetime=INCOMPLETE
# A node of a captured graph that PyTorch keeps is taken out by hand before its first replay.
import torch
from _common import capture, full, report
from cuda.bindings import runtime

x, z = full(3.0), full(0.0)


def run():
    y = torch.sin(x * 2 + 1) * 3
    z.fill_(7.0)
    return y


run()
z.zero_()
graph, y = capture(run, graph=torch.cuda.CUDAGraph(keep_graph=True))
error, nodes, count = runtime.cudaGraphGetNodes(graph=runtime.cudaGraph_t(graph.raw_cuda_graph()), numNodes=16)
assert int(error) == 0 and count == 5
assert int(runtime.cudaGraphDestroyNode(node=nodes[4])[0]) == 0
graph.replay()
report(y, z)
