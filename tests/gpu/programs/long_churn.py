# expect: lifetime=PASS
# Allocates so fast and so long that the probe takes certificates instead of following events.
import time

import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
end = time.monotonic() + 5
while time.monotonic() < end:
    for _ in range(200):
        junk = torch.empty(5000, device="cuda")
        del junk
    graph.replay()
    torch.cuda.synchronize()
report(y)
