# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# What the forked branch reads is freed.
import torch
from _common import capture, full, report

x, z = full(3.0), full(4.0)
side = torch.cuda.Stream()
_ = x * 2 + 1


def run():
    side.wait_stream(torch.cuda.current_stream())
    a = x * 2
    with torch.cuda.stream(side):
        b = z * 3
    torch.cuda.current_stream().wait_stream(side)
    return a + b


graph, y = capture(run)
graph.replay()
torch.cuda.synchronize()
del z  # the freeing line
graph.replay()
report(y)
