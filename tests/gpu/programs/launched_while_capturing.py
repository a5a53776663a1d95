# expect: lifetime=FAIL
# While one graph is captured, another is launched on a stream of its own through cuda-bindings: that one runs at once.
import torch
from _common import capture, executable, full, grab, report
from cuda.bindings import runtime

x = full(3.0)
_ = x * 2 + 1
first, y = capture(lambda: x * 2 + 1, graph=torch.cuda.CUDAGraph(keep_graph=True))
made = executable(first.raw_cuda_graph())
first.replay()
side = torch.cuda.Stream()
torch.cuda.synchronize()
pointer = x.data_ptr()
del x  # the freeing line
thief = grab(pointer, 50.0)
z = full(1.0)
torch.cuda.synchronize()
second = torch.cuda.CUDAGraph()
with torch.cuda.graph(second, capture_error_mode="relaxed"):
    out = z * 2
    assert int(runtime.cudaGraphLaunch(made, side.cuda_stream)[0]) == 0
torch.cuda.synchronize()
second.replay()
report(y, out)
