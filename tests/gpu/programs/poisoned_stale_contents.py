# expect: lifetime=PASS numerical=FAIL coverage=PASS outside_guarantee=yes class=stale-contents poison=changes
# The graph reads memory of its pool that nothing wrote in this replay: what an earlier graph left there.
import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
pool = torch.cuda.graph_pool_handle()
first, kept = capture(lambda: (x * 2) + 1, pool=pool)
first.replay()
torch.cuda.synchronize()
second, y = capture(lambda: torch.empty_like(x) * 1, pool=pool)
second.replay()
report(y)
