# expect: lifetime=!PASS numerical=PASS coverage=PASS outside_guarantee=yes class=outside-allocator
# The caching allocator is switched off for a while, and an input was made meanwhile.
import torch
from _common import capture, full, report

y = full(0.0)
torch.cuda.caching_allocator_enable(False)
x = full(3.0)
torch.cuda.caching_allocator_enable(True)
torch.mul(x, 2, out=y)
graph, _ = capture(lambda: torch.mul(x, 2, out=y))
graph.replay()
report(y)
