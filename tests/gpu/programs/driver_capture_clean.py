# expect: lifetime=PASS
# A stream is captured through cuda-bindings into memory that all exists before.
import torch
from _common import executable, full, launch, report
from cuda.bindings import runtime

x, t, y = full(3.0), full(0.0), full(0.0)
side = torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(side):
    mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeRelaxed
    assert int(runtime.cudaStreamBeginCapture(stream=side.cuda_stream, mode=mode)[0]) == 0
    torch.mul(x, 2, out=t)
    torch.add(t, 1, out=y)
    error, raw = runtime.cudaStreamEndCapture(stream=side.cuda_stream)
    assert int(error) == 0
made = executable(int(raw))
torch.cuda.synchronize()
for value in (1.0, 2.0):
    x.fill_(value)
    launch(made)
    report(y)
