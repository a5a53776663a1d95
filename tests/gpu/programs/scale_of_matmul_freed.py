# expect: lifetime=FAIL
# The scale of a matmul in 8 bits is a tensor of one number: it goes, the large operands stay.
import torch
from _common import report

torch.manual_seed(0)
a = torch.randn(256, 256, device="cuda").to(torch.float8_e4m3fn)
b = torch.randn(256, 256, device="cuda").to(torch.float8_e4m3fn).t()
one = torch.ones((), device="cuda")
scale = torch.full((), 0.5, device="cuda")


def run():
    return torch._scaled_mm(a, b, scale_a=scale, scale_b=one, out_dtype=torch.bfloat16)


run()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = run()
graph.replay()
report(y)
torch.cuda.synchronize()
del scale  # the freeing line
graph.replay()
report(y * 0)
