# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# A child of a child reads the freed input.
from _common import built, capture, embed, full, launch, report
from torch.cuda import CUDAGraph

x = full(3.0)
_ = x * 2 + 1
inner, h = capture(lambda: x * 2 + 1, graph=CUDAGraph(keep_graph=True))


def body():
    embed(inner.raw_cuda_graph())
    return h + 1


middle, y = capture(body, graph=CUDAGraph(keep_graph=True))
parent = built([middle.raw_cuda_graph()])
launch(parent)
del x  # the freeing line
launch(parent)
report(y)
