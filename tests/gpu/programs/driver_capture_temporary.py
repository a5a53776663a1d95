# expect: lifetime=FAIL
# A stream is captured through cuda-bindings: a temporary of the default pool is let go inside, and is somebody else's before the
# graph is instantiated.
import torch
from _common import executable, full, grab, launch, report
from cuda.bindings import runtime

x, y = full(3.0), full(0.0)
_ = x * 2
torch.add(_, 1, out=y)
del _
torch.cuda.synchronize()
torch.cuda.empty_cache()
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    spare = full(0.0)
    del spare
    torch.cuda.synchronize()
    mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeRelaxed
    assert int(runtime.cudaStreamBeginCapture(side.cuda_stream, mode)[0]) == 0
    t = x * 2
    torch.add(t, 1, out=y)
    pointer = t.data_ptr()
    del t
    error, raw = runtime.cudaStreamEndCapture(side.cuda_stream)
    assert int(error) == 0
    weights = grab(pointer, 5.0)
made = executable(int(raw))
torch.cuda.synchronize()
launch(made)
report(y, weights[-1])
