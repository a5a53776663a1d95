# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=pool_outlived
# Graphs are captured, replayed and deleted in turn; each finds the memory of those before it.
import torch
from _common import capture, full, report

for round_ in range(6):
    x = full(float(round_))
    _ = x * 2 + 1
    graph, y = capture(lambda x=x: x * 2 + 1)
    graph.replay()
    graph.replay()
    report(y)
    del graph, y, x
    if round_ % 2:
        torch.cuda.empty_cache()
