# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# Weights are loaded again and processed into new parameters, as after an update of weights in a server.
import torch
from _common import capture, report


class Experts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w13 = torch.nn.Parameter(torch.ones(8, 256, 256), requires_grad=False)

    def forward(self, x):
        return torch.einsum("eij,nj->ni", self.w13, x)


def process(module, value):
    shuffled = torch.full((8, 256, 256), value, device="cuda").transpose(1, 2).contiguous()
    module.w13 = torch.nn.Parameter(shuffled, requires_grad=False)  # the freeing line


experts = Experts().cuda()
x = torch.ones(16, 256, device="cuda")
experts(x)
graph, y = capture(lambda: experts(x))
graph.replay()
process(experts, 2.0)
taken = [torch.zeros(8, 256, 256, device="cuda") for _ in range(4)]
graph.replay()
report(y)
