# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# Weights go to the host and come back, at the same address or not: the graph has none of that.
import torch
from _common import capture, report

torch.manual_seed(0)
layer = torch.nn.Linear(1024, 1024, bias=False).cuda().requires_grad_(False)
x = torch.ones(64, 1024, device="cuda")
layer(x)
graph, y = capture(lambda: layer(x) * 2)
graph.replay()
layer.to("cpu")  # the freeing line
layer.to("cuda")
graph.replay()
report(x)
