# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=fork_join_freed
# The capture forks to another stream and joins; events are nodes or edges.
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
    b.record_stream(torch.cuda.current_stream())
    return a + b


graph, y = capture(run)
for _ in range(3):
    graph.replay()
report(y)
