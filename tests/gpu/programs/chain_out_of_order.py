# expect: lifetime=!PASS
# The same segments; the second is replayed after the third has reused the memory that the first handed over.
import torch
from _common import capture, full, report

x = full(3.0)
_ = ((x + 1) * 2) + 5
pool = torch.cuda.graph_pool_handle()
s1, h1 = capture(lambda: x + 1, pool=pool)
s2, h2 = capture(lambda: h1 * 2, pool=pool)
del h1
s3, y = capture(lambda: (h2 + 5) * (h2 + 7), pool=pool)
s1.replay()
s3.replay()
s2.replay()
report(h2)
