# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=child_graph_freed
# A captured graph becomes a child node of a graph that is being captured; its temporaries are long given back.
from _common import capture, embed, full, report
from torch.cuda import CUDAGraph

x = full(3.0)
_ = x * 2 + 1
inner, h = capture(lambda: x * 2 + 1, graph=CUDAGraph(keep_graph=True))


def body():
    embed(inner.raw_cuda_graph())
    return h + 1


outer, y = capture(body)
outer.replay()
report(y)
