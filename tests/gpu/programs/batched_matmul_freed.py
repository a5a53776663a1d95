# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# One operand of a batched matmul.
import torch
from _common import capture, report

torch.manual_seed(0)
a, b = (torch.randn(16, 128, 128, device="cuda") for _ in range(2))
torch.bmm(a, b)
graph, y = capture(lambda: torch.bmm(a, b))
graph.replay()
del b  # the freeing line
graph.replay()
report(a)
