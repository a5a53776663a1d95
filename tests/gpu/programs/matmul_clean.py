# expect: lifetime=PASS
# A small network of matmuls, norms and softmax.
import torch
from _common import capture, report

torch.manual_seed(0)
a = torch.randn(64, 1024, device="cuda", dtype=torch.bfloat16)
ws = [torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16) * 0.03 for _ in range(4)]


def run():
    h = a
    for w in ws:
        h = torch.nn.functional.layer_norm(torch.nn.functional.gelu(h @ w), (1024,))
    return torch.softmax(h.float(), -1)


for _ in range(2):
    run()
graph, y = capture(run)
for _ in range(5):
    junk = [torch.randn(64, 1024, device="cuda") for _ in range(10)]
    graph.replay()
report(y)
