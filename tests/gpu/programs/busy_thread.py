# expect: lifetime=PASS
# Another thread allocates and frees all the time.
import threading

import torch
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
stop = threading.Event()


def churn():
    while not stop.is_set():
        kept = [torch.empty(1000 + i, device="cuda") for i in range(50)]
        del kept


threads = [threading.Thread(target=churn) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(2000):
    junk = torch.empty(5000, device="cuda")
    del junk
    graph.replay()
stop.set()
for thread in threads:
    thread.join()
report(y)
