# expect: lifetime=PASS
# Forward and backward are recorded by torch.compile: what the one saves the other reads and lets go of.
import torch
from _common import report

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model, mode="reduce-overhead")
x = torch.randn(32, 128, device="cuda")
for _ in range(6):
    torch.compiler.cudagraph_mark_step_begin()
    compiled(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
report(*model.parameters())
