# expect: lifetime=FAIL
# An optimizer's step is captured; its learning rate, a tensor, is replaced by another one.
import torch
from _common import report

torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(64, 64, device="cuda"))
optimizer = torch.optim.AdamW([weight], lr=torch.tensor(0.1, device="cuda"), fused=True, capturable=True)
weight.grad = torch.ones_like(weight)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    optimizer.step()
graph.replay()
torch.cuda.synchronize()
optimizer.param_groups[0]["lr"] = optimizer.defaults["lr"] = torch.tensor(0.01, device="cuda")  # the freeing line
graph.replay()
report(weight * 0)
