# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# Only a memset node references the freed buffer; replay clears what its new owner keeps there.
import torch
from _common import N, capture, full, grab, report
from cuda.bindings import runtime

x, buffer = full(3.0), full(1.0)


def run():
    stream = torch.cuda.current_stream().cuda_stream
    assert int(runtime.cudaMemsetAsync(buffer.data_ptr(), 0, 4 * N, stream)[0]) == 0
    return x + 1


run()
torch.cuda.synchronize()
graph, y = capture(run)
pointer = buffer.data_ptr()
del buffer  # the freeing line
victim = grab(pointer, 7.0)[-1]
graph.replay()
report(y, victim)
