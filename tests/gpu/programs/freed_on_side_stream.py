# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# record_stream delays the reuse of the block; the owner gave it up all the same.
import torch
from _common import capture, full, report

side = torch.cuda.Stream()
x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
torch.cuda.synchronize()
with torch.cuda.stream(side):
    z = x * 3
    x.record_stream(side)
del x  # the freeing line
graph.replay()
torch.cuda.synchronize()
report(y, z)
