# expect: lifetime=FAIL
# A worker keeps its buffer in thread-local storage, which goes when the thread ends.
import threading

import torch
from _common import capture, full, report

local, made = threading.local(), []


def work():
    local.buffer = full(3.0)
    _ = local.buffer * 2 + 1
    made.append(capture(lambda: local.buffer * 2 + 1))
    made[0][0].replay()
    torch.cuda.synchronize()


thread = threading.Thread(target=work)
thread.start()
thread.join()
graph, y = made[0]
graph.replay()
report(y * 0)
