# expect: lifetime=FAIL
# A kernel compiled from a text at run time is launched with pointers by hand.
import torch
from _common import N, capture, full, report

source = 'extern "C" __global__ void scale(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * 2.0f; }'
scale = torch.cuda._compile_kernel(source, "scale")
x, y = full(3.0), full(0.0)


def run():
    scale(grid=(N // 256, 1, 1), block=(256, 1, 1), args=[x, y, N])


run()
graph, _ = capture(run)
graph.replay()
torch.cuda.synchronize()
report(y)
del x  # the freeing line
graph.replay()
report(y * 0)
