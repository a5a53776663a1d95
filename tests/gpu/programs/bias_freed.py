# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The bias of a matmul lies in its epilogue's parameters.
import torch
from _common import capture, report

torch.manual_seed(0)
x, w = (torch.randn(512, 512, device="cuda", dtype=torch.bfloat16) for _ in range(2))
b = torch.randn(512, device="cuda", dtype=torch.bfloat16)
torch.nn.functional.linear(x, w, b)
graph, y = capture(lambda: torch.nn.functional.linear(x, w, b))
graph.replay()
del b  # the freeing line
graph.replay()
report(x)
