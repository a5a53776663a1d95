# expect: lifetime=PASS outside=1
# A kernel reads memory that no caching allocator owns.
import torch
from _common import N, capture, full, report
from cuda.bindings import runtime

error, pointer = runtime.cudaMalloc(4 * N)
assert int(error) == 0


class Raw:
    __cuda_array_interface__ = {"shape": (N,), "typestr": "<f4", "data": (int(pointer), False), "version": 3}


raw = torch.as_tensor(Raw(), device="cuda")
raw.fill_(2.0)
x = full(3.0)
_ = x * raw
graph, y = capture(lambda: x * raw)
graph.replay()
report(y)
