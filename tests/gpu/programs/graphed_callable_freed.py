# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# A module made by make_graphed_callables gets a new weight.
import torch
from _common import report

torch.manual_seed(0)
module = torch.nn.Linear(512, 512, bias=False).cuda().requires_grad_(False)
x = torch.ones(32, 512, device="cuda")
graphed = torch.cuda.make_graphed_callables(module, (x,))
graphed(x)
module.weight.data = torch.zeros(512, 512, device="cuda")  # the freeing line
taken = [torch.ones(512, 512, device="cuda") for _ in range(4)]
out = graphed(x)
report(x)
