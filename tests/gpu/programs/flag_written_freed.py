# expect: lifetime=FAIL
# As flag_written_clean, and the flag is gone.
import torch
from _common import capture, full, report
from cuda.bindings import driver

x, flag = full(3.0), torch.zeros(1 << 22, dtype=torch.int32, device="cuda")
_ = x * 2


def step():
    y = x * 2
    code = driver.cuStreamWriteValue32(torch.cuda.current_stream().cuda_stream, flag.data_ptr(), 7, 0)[0]
    assert int(code) == 0
    return y


graph, y = capture(step)
graph.replay()
torch.cuda.synchronize()
del flag  # the freeing line
graph.replay()
report(y)
