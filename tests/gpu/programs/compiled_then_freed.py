# expect: lifetime=FAIL
# A graph that the program captured itself loses its input, beside a compiled function that is as it should be.
import torch
from _common import capture, full, report

torch.manual_seed(0)
weight = torch.randn(256, 256, device="cuda") / 16
compiled = torch.compile(lambda x: torch.sin(x @ weight), mode="reduce-overhead")
x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
for step in range(4):
    torch.compiler.cudagraph_mark_step_begin()
    report(compiled(torch.full((64, 256), 0.01 * step, device="cuda")).clone())
graph.replay()
torch.cuda.synchronize()
del x  # the freeing line
graph.replay()
report(y * 0)
