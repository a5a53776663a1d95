# expect: lifetime=FAIL
# A matmul's weight, whose address lies in a packed buffer or a tensor map, is gone.
import torch
from _common import capture, report

torch.manual_seed(0)
a = torch.randn(1024, 4096, device="cuda", dtype=torch.bfloat16)
w = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
_ = a @ w
graph, y = capture(lambda: a @ w)
graph.replay()
del w  # the freeing line
graph.replay()
report(y)
