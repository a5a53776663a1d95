# expect: lifetime=!PASS
# An output is dropped, another capture of the pool takes its memory, and the first graph replays again.
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
pool = torch.cuda.graph_pool_handle()
g1, y1 = capture(lambda: x * 2, pool=pool)
g1.replay()
report(y1)
del y1
g2, y2 = capture(lambda: x + 1, pool=pool)
g2.replay()
g1.replay()
report(y2)
