# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# An embedding's indices are freed; the table is not.
import torch
from _common import capture, report

torch.manual_seed(0)
table = torch.randn(4096, 512, device="cuda")
ids = torch.arange(256, device="cuda")
torch.nn.functional.embedding(ids, table)
graph, y = capture(lambda: torch.nn.functional.embedding(ids, table) * 2)
graph.replay()
del ids  # the freeing line
graph.replay()
report(y)
