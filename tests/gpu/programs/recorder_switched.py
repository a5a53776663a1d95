# expect: lifetime=FAIL
# The program switches the allocator's history off, as servers do; the fault comes after.
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
torch.cuda.memory._record_memory_history(enabled=None)
del x  # the freeing line
graph.replay()
report(y)
