# expect: lifetime=INCOMPLETE
# The worker is killed while it replays.
import os
import signal
import time

from _common import capture, full

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
for _ in range(1000):
    graph.replay()
time.sleep(0.6)
print("going", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
