# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# The input is freed, and an allocation that finds no room makes the allocator unmap its segment.
import torch
from _common import capture, full, leave

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
torch.cuda.synchronize()
del x, _  # the freeing line
total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (2 << 20)) / total)
big = torch.empty(24 << 20, dtype=torch.uint8, device="cuda")
leave(graph.replay)
