# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# Only the child graph references the freed input; only the parent is replayed.
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
del x  # the freeing line
outer.replay()
report(y)
