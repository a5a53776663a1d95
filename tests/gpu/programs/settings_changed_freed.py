# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# Segments become expandable while the program runs; an input of each kind, one freed.
import torch
from _common import capture, full, report

x = full(3.0)
torch.cuda.memory._set_allocator_settings("expandable_segments:True")
z = full(4.0)
_ = x * 2 + z
graph, y = capture(lambda: x * 2 + z)
graph.replay()
torch.cuda.synchronize()
del z  # the freeing line
graph.replay()
report(y)
