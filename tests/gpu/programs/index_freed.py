# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The index tensor's address lies among the operands of an indexing kernel.
import torch
from _common import capture, report

table = torch.arange(1 << 20, device="cuda", dtype=torch.float32).view(1024, 1024)
rows = torch.arange(0, 1024, 2, device="cuda")
columns = torch.arange(0, 1024, 2, device="cuda")
_ = table[rows, columns]
graph, y = capture(lambda: table[rows, columns] * 2)
graph.replay()
del columns  # the freeing line
graph.replay()
report(y)
