# expect: lifetime=FAIL
# A Triton kernel's argument is gone.
import triton
import triton.language as tl
from _common import N, capture, full, report


@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


x, y = full(3.0), full(0.0)


def run():
    scale[(triton.cdiv(N, 1024),)](x, y, N, BLOCK=1024)


run()
graph, _ = capture(run)
graph.replay()
del x  # the freeing line
graph.replay()
report(y)
