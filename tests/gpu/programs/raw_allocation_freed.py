# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# Memory taken from the caching allocator as an address and given back as one.
import torch
from _common import N, capture, full, report

pointer = torch.cuda.caching_allocator_alloc(4 * N)


class Raw:
    __cuda_array_interface__ = {"shape": (N,), "typestr": "<f4", "data": (pointer, False), "version": 3}


raw = torch.as_tensor(Raw(), device="cuda")
raw.fill_(2.0)
x = full(3.0)
_ = x * raw
graph, y = capture(lambda: x * raw)
graph.replay()
torch.cuda.synchronize()
torch.cuda.caching_allocator_delete(pointer)  # the freeing line
graph.replay()
report(y)
