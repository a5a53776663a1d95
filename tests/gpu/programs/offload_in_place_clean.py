# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=offload_and_back
# Weights are copied to the host and back into the same storage.
import torch
from _common import capture, report

torch.manual_seed(0)
layer = torch.nn.Linear(1024, 1024, bias=False).cuda().requires_grad_(False)
x = torch.ones(64, 1024, device="cuda")
layer(x)
graph, y = capture(lambda: layer(x) * 2)
graph.replay()
saved = {name: value.cpu() for name, value in layer.state_dict().items()}
layer.weight.zero_()
layer.load_state_dict(saved)
graph.replay()
report(y)
