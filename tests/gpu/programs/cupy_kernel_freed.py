# expect: lifetime=FAIL
# A kernel of CuPy is captured: it reads memory of PyTorch through DLPack and writes memory of CuPy's own pool.
import cupy
import torch
from _common import capture, full, report

kernel = cupy.RawKernel(
    'extern "C" __global__ void scale(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * 2.0f; }',
    "scale",
)
x = full(3.0)
n = x.numel()
out = cupy.zeros(n, dtype=cupy.float32)


def run():
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        kernel((n // 256,), (256,), (cupy.from_dlpack(x), out, cupy.int32(n)))


run()
graph, _ = capture(run)
graph.replay()
torch.cuda.synchronize()
report(torch.from_dlpack(out))
del x  # the freeing line
graph.replay()
torch.cuda.synchronize()
