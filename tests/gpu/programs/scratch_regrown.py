# expect: lifetime=FAIL
# A Triton kernel builds tensor maps in scratch memory that the program keeps and grows for a larger kernel.
import torch
import triton
import triton.language as tl
from _common import capture, report

held = {}


def scratch(size, alignment, stream):
    wanted = max(size, 1 << 20) * held["factor"]
    if held.get("buffer") is None or held["buffer"].numel() < wanted:
        held["buffer"] = torch.empty(wanted, dtype=torch.int8, device="cuda")  # the freeing line
    return held["buffer"]


held["factor"] = 1
triton.set_allocator(scratch)


@triton.jit
def scale(source, target, n, BLOCK: tl.constexpr):
    a = tl.make_tensor_descriptor(source, shape=[n, BLOCK], strides=[BLOCK, 1], block_shape=[BLOCK, BLOCK])
    b = tl.make_tensor_descriptor(target, shape=[n, BLOCK], strides=[BLOCK, 1], block_shape=[BLOCK, BLOCK])
    row = tl.program_id(0) * BLOCK
    b.store([row, 0], a.load([row, 0]) * 2)


x, y = torch.ones(1024, 64, device="cuda"), torch.zeros(1024, 64, device="cuda")


def run():
    scale[(16,)](x, y, 1024, BLOCK=64)


run()
graph, _ = capture(run)
graph.replay()
torch.cuda.synchronize()
report(y)
held["factor"] = 2
run()
torch.cuda.synchronize()
graph.replay()
report(y)
