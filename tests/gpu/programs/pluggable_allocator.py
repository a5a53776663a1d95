# expect: lifetime=!PASS numerical=PASS coverage=PASS outside_guarantee=yes class=outside-allocator
# An allocator of the program's own serves everything; its memory shows no owners.
import torch
from _common import N, capture, plugged, report

torch.cuda.memory.change_current_allocator(plugged())
x, y = torch.full((N,), 3.0, device="cuda"), torch.zeros(N, device="cuda")
torch.mul(x, 2, out=y)
graph, _ = capture(lambda: torch.mul(x, 2, out=y))
graph.replay()
report(y)
