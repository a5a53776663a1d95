# expect: lifetime=PASS
# Two threads capture at the same time, each on a stream of its own, and a third replays and allocates meanwhile.
import threading

import torch
from _common import capture, full, report

torch.cuda.init()
xs = [full(1.0), full(2.0), full(3.0)]
_ = torch.sin(xs[0] * 2 + 1)
graph, y = capture(lambda: xs[2] * 2 + 1)
together = threading.Barrier(3)
made = {}


def work(number):
    stream = torch.cuda.Stream()
    mine = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        together.wait()
        mine.capture_begin(capture_error_mode="thread_local")
        out = xs[number]
        for _ in range(40):
            out = torch.sin(out * 2 + 1)
        mine.capture_end()
    made[number] = mine, out


threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
for thread in threads:
    thread.start()
together.wait()
for _ in range(20):
    graph.replay()
for thread in threads:
    thread.join()
torch.cuda.synchronize()
for number in range(2):
    made[number][0].replay()
    report(made[number][1])
report(y)
