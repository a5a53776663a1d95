# expect: lifetime=FAIL
# The same, and the input is freed and taken in the midst of it; the graph goes on replaying.
import time

import torch
from _common import capture, full, grab, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
end = time.monotonic() + 4
freed = False
while time.monotonic() < end + 1.5:
    for _ in range(200):
        junk = torch.empty(5000, device="cuda")
        del junk
    graph.replay()
    torch.cuda.synchronize()
    if not freed and time.monotonic() > end:
        pointer = x.data_ptr()
        del x
        thief = grab(pointer, 3.0)
        freed = True
report(y)
