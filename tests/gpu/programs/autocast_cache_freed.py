# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The cast of a weight was cached by autocast before the capture, and the cache dies with its context.
import torch
from _common import capture, report

torch.manual_seed(0)
layer = torch.nn.Linear(1024, 1024).cuda()
x = torch.ones(64, 1024, device="cuda")
with torch.autocast("cuda", torch.bfloat16):  # the freeing line
    layer(x)
    graph, y = capture(lambda: layer(x))
graph.replay()
report(y)
