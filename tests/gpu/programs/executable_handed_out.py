# expect: lifetime=INCOMPLETE
# The executable's handle is launched by a library in C, which no hook sees: after one replay that all went well with, the input goes.
import ctypes

import torch
from _common import capture, full, grab, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
handle = graph.raw_cuda_graph_exec()
torch.cuda.synchronize()
pointer = x.data_ptr()
del x
thief = grab(pointer, 50.0)
library = ctypes.CDLL("libcuda.so.1")
print(library.cuGraphLaunch(ctypes.c_void_p(handle), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))
report(y)
