# expect: lifetime=PASS
# The program uses the allocator's history itself, around healthy replays.
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
torch.cuda.memory._record_memory_history(enabled="all")
graph.replay()
torch.cuda.memory._record_memory_history(enabled=None)
graph.replay()
report(y)
