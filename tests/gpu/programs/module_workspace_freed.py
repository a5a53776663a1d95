# expect: lifetime=FAIL
# A workspace held by a module attribute is replaced between two replays of one of several graphs.
import torch
from _common import capture, report


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(512, 512)
        self.register_buffer("workspace", torch.zeros(64, 512))

    def forward(self, x):
        self.workspace[: x.shape[0]].copy_(self.linear(x))
        return self.workspace[: x.shape[0]] * 2


torch.manual_seed(0)
layer = Layer().cuda().requires_grad_(False)
inputs = {n: torch.ones(n, 512, device="cuda") for n in (1, 4, 16)}
for x in inputs.values():
    layer(x)
pool = torch.cuda.graph_pool_handle()
graphs = {n: capture(lambda x=x: layer(x), pool=pool) for n, x in inputs.items()}
for graph, _ in graphs.values():
    graph.replay()
layer.workspace = torch.zeros(128, 512, device="cuda")  # the freeing line
graphs[4][0].replay()
report(graphs[4][1])
