# expect: lifetime=!PASS numerical=PASS coverage=PASS outside_guarantee=yes class=outside-allocator
# The driver's own allocator serves the program; its memory shows no owners.
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
report(y)
