# expect: lifetime=PASS
# make_graphed_callables captures forward and backward by itself.
import torch
from _common import report

torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).cuda()
sample = torch.randn(32, 256, device="cuda", requires_grad=True)
graphed = torch.cuda.make_graphed_callables(module, (sample,))
for step in range(3):
    x = torch.full((32, 256), 0.1 * step, device="cuda", requires_grad=True)
    out = graphed(x)
    out.sum().backward()
    report(out, x.grad)
