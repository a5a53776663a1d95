# expect: lifetime=FAIL
# As traceback_keeps_clean, and the exception is let go.
import torch
from _common import capture, full, report

made, kept = [], []


def work():
    buffer = full(3.0)
    _ = buffer * 2 + 1
    made.append(capture(lambda: buffer * 2 + 1))
    raise ValueError("after the capture")


try:
    work()
except ValueError as error:
    kept.append(error)
graph, y = made[0]
graph.replay()
torch.cuda.synchronize()
kept.clear()  # the freeing line
graph.replay()
report(y * 0)
