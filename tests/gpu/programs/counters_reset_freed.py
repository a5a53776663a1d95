# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The program resets the allocator's counters around the free.
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
torch.cuda.reset_accumulated_memory_stats()
del x  # the freeing line
torch.cuda.reset_peak_memory_stats()
graph.replay()
report(y)
