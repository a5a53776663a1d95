# expect: lifetime=FAIL
# A subclass of CUDAGraph with methods of its own.
import torch
from _common import capture, full, grab, report


class Graph(torch.cuda.CUDAGraph):
    def replay(self):
        self.count = getattr(self, "count", 0) + 1
        super().replay()


x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1, graph=Graph())
pointer = x.data_ptr()
graph.replay()
del x  # the freeing line
thief = grab(pointer, 50.0)
graph.replay()
report(y)
