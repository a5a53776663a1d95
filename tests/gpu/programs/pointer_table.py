# expect: lifetime=PASS numerical=FAIL coverage=PASS outside_guarantee=yes class=device-pointer-table
# A kernel takes its addresses from a table in device memory: no parameter names the freed tensor.
import torch
import triton
import triton.language as tl
from _common import N, capture, full, report


@triton.jit
def gather(table, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for t in range(2):
        source = tl.load(table + t).to(tl.pointer_type(tl.float32))
        tl.store(y + i, tl.load(y + i, mask=i < n) + tl.load(source + i, mask=i < n), mask=i < n)


parts = [full(1.0), full(2.0)]
table = torch.tensor([p.data_ptr() for p in parts], device="cuda")
y = full(0.0)


def run():
    y.zero_()
    gather[(triton.cdiv(N, 1024),)](table, y, N, BLOCK=1024)


run()
graph, _ = capture(run)
graph.replay()
report(y)
parts.pop()
graph.replay()
report(table * 0)
