# expect: lifetime=PASS
# The graph that made a tensor is gone, and its pool with it; the tensor lives, and another graph reads it.
import torch
from _common import capture, full, report

x = full(3.0)
_ = torch.sin(x * 2 + 1)
first, h = capture(lambda: torch.sin(x * 2 + 1))
first.replay()
second, y = capture(lambda: h * 2 + 1)
torch.cuda.synchronize()
first.reset()
del first
torch.cuda.empty_cache()
noise = [full(1.0) for _ in range(4)]
second.replay()
report(y)
