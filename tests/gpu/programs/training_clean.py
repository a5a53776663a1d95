# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=many_tensors_freed
# A whole training step is one graph: forward with dropout, backward, a capturable optimizer.
import torch
from _common import report

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(256, 256), torch.nn.Dropout(0.2), torch.nn.GELU(), torch.nn.Linear(256, 64)
).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, capturable=True)
x = torch.randn(32, 256, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        model(x).square().mean().backward()
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
for _ in range(4):
    x.copy_(torch.randn(32, 256, device="cuda"))
    graph.replay()
report(loss, *model.parameters())
