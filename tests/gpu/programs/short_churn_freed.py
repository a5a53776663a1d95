# expect: lifetime=FAIL
# A second of churn is followed event by event: the freeing line is named.
import time

import torch
from _common import capture, full, grab, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
end = time.monotonic() + 1
while time.monotonic() < end:
    for _ in range(200):
        junk = torch.empty(5000, device="cuda")
        del junk
    graph.replay()
    torch.cuda.synchronize()
pointer = x.data_ptr()
del x  # the freeing line
thief = grab(pointer, 3.0)
graph.replay()
report(y)
