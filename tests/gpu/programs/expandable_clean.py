# expect: lifetime=PASS
# Expandable segments, with empty_cache() between capture and replay.
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
junk = full(1.0)
del junk
torch.cuda.empty_cache()
more = [full(float(i)) for i in range(4)]
graph.replay()
report(y)
