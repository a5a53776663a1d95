# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# A Triton kernel gets its input as a tensor map: the address lies inside a by-value descriptor.
import torch
import triton
import triton.language as tl
from _common import capture, report
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def scale(source, target, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    target.store([row, 0], source.load([row, 0]) * 2)


x = torch.ones(1024, 64, device="cuda")
y = torch.zeros(1024, 64, device="cuda")


def run():
    scale[(16,)](TensorDescriptor.from_tensor(x, [64, 64]), TensorDescriptor.from_tensor(y, [64, 64]), BLOCK=64)


run()
graph, _ = capture(run)
graph.replay()
torch.cuda.synchronize()
del x  # the freeing line
graph.replay()
report(y)
