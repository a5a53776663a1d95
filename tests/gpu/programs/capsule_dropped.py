# expect: lifetime=FAIL
# As capsule_keeps_clean, and the capsule goes unopened.
import torch
from _common import capture, full, report
from torch.utils.dlpack import to_dlpack

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
capsule = to_dlpack(x)
del x
graph.replay()
torch.cuda.synchronize()
del capsule  # the freeing line
graph.replay()
report(y * 0)
