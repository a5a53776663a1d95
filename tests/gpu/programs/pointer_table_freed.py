# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The table of addresses itself is freed.
import torch
import triton
import triton.language as tl
from _common import N, capture, full, report


@triton.jit
def gather(table, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    source = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(y + i, tl.load(source + i, mask=i < n), mask=i < n)


part, y = full(1.0), full(0.0)
table = torch.tensor([part.data_ptr()], device="cuda")


def run():
    gather[(triton.cdiv(N, 1024),)](table, y, N, BLOCK=1024)


run()
graph, _ = capture(run)
graph.replay()
torch.cuda.synchronize()
del table  # the freeing line
graph.replay()
report(part)
