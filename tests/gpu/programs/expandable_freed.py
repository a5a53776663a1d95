# expect: lifetime=FAIL
# Expandable segments: the input is freed and its pages are unmapped.
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
report(y)
del x  # the freeing line
graph.replay()
report(y)
