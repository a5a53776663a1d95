# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# A parent built by hand launches a captured graph as its child; the child's input belongs to somebody else by then.
from _common import built, capture, full, grab, launch, report
from torch.cuda import CUDAGraph

x = full(3.0)
_ = x * 2 + 1
first, h = capture(lambda: x * 2 + 1, graph=CUDAGraph(keep_graph=True))
second, y = capture(lambda: (h + 5) * 2, graph=CUDAGraph(keep_graph=True))
parent = built([first.raw_cuda_graph(), second.raw_cuda_graph()])
launch(parent)
pointer = x.data_ptr()
del x  # the freeing line
thief = grab(pointer, 50.0)
launch(parent)
report(y)
