# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=static_input_replaced
# A static input is filled in place before each replay.
import torch
from _common import capture, report

static = {"x": torch.zeros(1 << 21, device="cuda")}
_ = static["x"] * 2
graph, y = capture(lambda: static["x"] * 2)
for value in (1.0, 2.0, 3.0):
    static["x"].copy_(torch.full((1 << 21,), value, device="cuda"))
    graph.replay()
report(y)
