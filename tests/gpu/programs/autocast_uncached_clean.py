# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=autocast_cache_freed
# Without the cache each cast is a node of the graph.
import torch
from _common import capture, report

torch.manual_seed(0)
layer = torch.nn.Linear(1024, 1024).cuda().requires_grad_(False)
x = torch.ones(64, 1024, device="cuda")
with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
    layer(x)
    graph, y = capture(lambda: layer(x))
graph.replay()
report(y)
