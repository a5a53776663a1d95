# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=recorder_switched
# Another thread takes snapshots of the allocator all the time.
import threading

import torch
from _common import capture, full, report

stop = threading.Event()


def look():
    while not stop.wait(0.002):
        torch.cuda.memory_snapshot()


thread = threading.Thread(target=look, daemon=True)
thread.start()
x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
for _ in range(200):
    noise = full(1.0)
    graph.replay()
stop.set()
thread.join()
report(y)
