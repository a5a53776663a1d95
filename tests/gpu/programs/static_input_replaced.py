# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# A static input is replaced where it should have been filled.
import torch
from _common import capture, report

static = {"x": torch.zeros(1 << 21, device="cuda")}
_ = static["x"] * 2
graph, y = capture(lambda: static["x"] * 2)
for value in (1.0, 2.0, 3.0):
    static["x"] = torch.full((1 << 21,), value, device="cuda")  # the freeing line
    graph.replay()
report(y)
