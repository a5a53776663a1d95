# expect: lifetime=PASS outside=1
# A copy from host memory that is not page-locked is captured through cuda-bindings. Host memory is listed, not judged.
import torch
from _common import capture, report
from cuda.bindings import runtime

source = torch.arange(1 << 20, dtype=torch.float32)
x = torch.zeros(1 << 20, device="cuda")


def step():
    kind = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
    stream = torch.cuda.current_stream().cuda_stream
    error = runtime.cudaMemcpyAsync(x.data_ptr(), source.data_ptr(), 4 << 20, kind, stream)[0]
    assert int(error) == 0, error
    return x * 2


graph, y = capture(step)
graph.replay()
report(y)
