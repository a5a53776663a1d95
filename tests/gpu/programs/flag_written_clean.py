# expect: lifetime=PASS
# A captured write of one word through the driver: its node holds the address in an array of operations.
import torch
from _common import capture, full, report
from cuda.bindings import driver

x, flag = full(3.0), torch.zeros(4, dtype=torch.int32, device="cuda")
_ = x * 2


def step():
    y = x * 2
    code = driver.cuStreamWriteValue32(torch.cuda.current_stream().cuda_stream, flag.data_ptr(), 7, 0)[0]
    assert int(code) == 0
    return y


graph, y = capture(step)
graph.replay()
report(y, flag)
