# expect: lifetime=PASS
# Three segments in one pool hand tensors over and free them on purpose; replayed in order.
import torch
from _common import capture, full, report

x = full(3.0)
_ = ((x + 1) * 2) + 5
pool = torch.cuda.graph_pool_handle()
s1, h1 = capture(lambda: x + 1, pool=pool)
s2, h2 = capture(lambda: h1 * 2, pool=pool)
del h1
s3, y = capture(lambda: (h2 + 5) * (h2 + 7), pool=pool)
del h2
for value in (3.0, 4.0, 5.0):
    x.fill_(value)
    for segment in (s1, s2, s3):
        segment.replay()
    report(y)
