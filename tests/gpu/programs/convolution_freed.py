# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# A convolution's weight is gone.
import torch
from _common import capture, report

torch.manual_seed(0)
x = torch.randn(8, 64, 32, 32, device="cuda")
w = torch.randn(64, 64, 3, 3, device="cuda")
torch.nn.functional.conv2d(x, w, padding=1)
torch.cuda.synchronize()
graph, y = capture(lambda: torch.nn.functional.conv2d(x, w, padding=1))
graph.replay()
torch.cuda.synchronize()
del w  # the freeing line
graph.replay()
report(x)
