# expect: lifetime=FAIL
# Weights go and are loaded anew at the same address, with the same stack, in the middle of a busy loop that never pauses.
import time

import torch

N = 1 << 20


def load(value):
    return torch.full((N,), value, device="cuda")


weights = {"w": load(1.0)}
x = torch.ones(N, device="cuda")
_ = x * weights["w"]
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * weights["w"]
end = time.monotonic() + 8.0
swap = time.monotonic() + 5.0
pointer = weights["w"].data_ptr()
swapped = False
while time.monotonic() < end:
    for _ in range(50):
        noise = torch.empty(512, device="cuda")
        del noise
    graph.replay()
    if not swapped and time.monotonic() > swap:
        weights.clear()
        weights["w"] = load(2.0)
        swapped = True
torch.cuda.synchronize()
print(swapped, weights["w"].data_ptr() == pointer)
