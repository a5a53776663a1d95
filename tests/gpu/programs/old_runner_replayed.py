# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# A runner is made anew with new buffers; somebody still holds the old one's replay method.
import torch
from _common import capture, full, report


class Runner:
    def __init__(self, value):
        self.buffer = full(value)
        _ = self.buffer * 2
        self.graph, self.out = capture(lambda: self.buffer * 2)

    def release(self):
        self.buffer = None  # the freeing line


runner = Runner(3.0)
replay = runner.graph.replay
old_out = runner.out
runner.release()
runner = Runner(5.0)
torch.cuda.synchronize()
replay()
runner.graph.replay()
report(old_out, runner.out)
