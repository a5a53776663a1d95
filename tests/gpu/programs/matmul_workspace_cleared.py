# expect: lifetime=!PASS numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The workspace that a matmul splits its sum in was made before the capture and is cleared after it.
import torch
from _common import report

torch.manual_seed(0)
a = torch.randn(64, 1 << 16, device="cuda")
b = torch.randn(1 << 16, 64, device="cuda")
stream = torch.cuda.Stream()
graph = torch.cuda.CUDAGraph()
with torch.cuda.stream(stream):
    torch.mm(a, b)
    torch.cuda.synchronize()
    graph.capture_begin()
    y = torch.mm(a, b)
    graph.capture_end()
torch.cuda.synchronize()
graph.replay()
torch.cuda.synchronize()
torch._C._cuda_clearCublasWorkspaces()  # the freeing line
graph.replay()
report(a)
