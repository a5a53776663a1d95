# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# One of ninety tensors of a fused optimizer step is gone.
import torch
from _common import capture, report

torch.manual_seed(0)
xs = [torch.randn(300 + i, device="cuda") for i in range(90)]
ys = [torch.randn(300 + i, device="cuda") for i in range(90)]
torch._foreach_addcmul(xs, ys, ys, 0.5)
graph, zs = capture(lambda: torch._foreach_addcmul(xs, ys, ys, 0.5))
graph.replay()
ys[71] = None  # the freeing line
graph.replay()
report(*zs[:3])
