# expect: lifetime=PASS
# Advanced indexing, scatter, gather, where and a sort: kernels with large by-value structs.
import torch
from _common import capture, report

torch.manual_seed(0)
x = torch.randn(64, 33, device="cuda")
index = torch.randint(0, 64, (64,), device="cuda")


def run():
    a = x[index].transpose(0, 1).contiguous()
    b = torch.where(a > 0, a, -a).sum(0, keepdim=True).expand(33, 64)
    c = torch.gather(b.t().contiguous(), 0, index[:, None].expand(64, 33))
    d = x.clone()
    d.index_put_((index,), c, accumulate=False)
    return torch.sort(d, dim=1).values, torch.cumsum(d, 0)


for _ in range(3):
    junk = [torch.randn(64, 33, device="cuda") for _ in range(20)]
    run()
    del junk
graph, (y, z) = capture(run)
graph.replay()
for _ in range(20):
    junk = [torch.randn(64, 33, device="cuda") for _ in range(20)]
    del junk
    graph.replay()
report(y, z)
