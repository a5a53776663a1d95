# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# A pool whose segments an allocator of the program's own makes; a tensor in it is freed.
import torch
from _common import capture, full, plugged, report

allocator = plugged()
pool = torch.cuda.MemPool(allocator.allocator())
with torch.cuda.use_mem_pool(pool):
    x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
torch.cuda.synchronize()
del x  # the freeing line
graph.replay()
report(y)
