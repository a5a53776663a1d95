# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# The input lies in a pool of the program's own, whose next tensor takes its block; the pool lives on.
import torch
from _common import capture, full, report

pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
pointer = x.data_ptr()
del x  # the freeing line
with torch.cuda.use_mem_pool(pool):
    thief = full(50.0)
assert thief.data_ptr() == pointer
graph.replay()
report(y)
