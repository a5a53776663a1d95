# expect: lifetime=!PASS numerical=PASS coverage=PASS outside_guarantee=yes class=outside-allocator
# The caching allocator is switched off: nothing tells who owns memory.
import os

os.environ["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
import torch
from _common import capture, full, report

x, y = full(3.0), full(0.0)
torch.mul(x, 2, out=y)
graph, _ = capture(lambda: torch.mul(x, 2, out=y))
graph.replay()
report(y)
