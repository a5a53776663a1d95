# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=out_of_memory_freed
# Running out of memory makes the allocator give its cached blocks back; everything captured is owned.
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
cached = [full(1.0) for _ in range(8)]
del cached
total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + (8 << 20)) / total)
big = torch.empty(16 << 20, dtype=torch.uint8, device="cuda")
graph.replay()
report(y)
