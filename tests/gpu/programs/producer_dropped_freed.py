# expect: lifetime=FAIL
# As producer_dropped_clean, and the tensor goes too.
import torch
from _common import capture, full, report

x = full(3.0)
_ = torch.sin(x * 2 + 1)
first, h = capture(lambda: torch.sin(x * 2 + 1))
first.replay()
second, y = capture(lambda: h * 2 + 1)
second.replay()
torch.cuda.synchronize()
first.reset()
del first
del h  # the freeing line
second.replay()
report(y * 0)
