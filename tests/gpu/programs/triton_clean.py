# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=triton_freed
# Plain pointers and tensor maps of tensors that live.
import torch
import triton
import triton.language as tl
from _common import capture, report
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def scale(source, target, other, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    i = row * 64 + tl.arange(0, BLOCK * 64)
    target.store([row, 0], source.load([row, 0]) * 2)
    tl.store(other + i, tl.load(other + i) + 1)


x, y, z = (torch.full((1024, 64), float(i), device="cuda") for i in (1, 2, 3))


def run():
    a, b = TensorDescriptor.from_tensor(x, [64, 64]), TensorDescriptor.from_tensor(y, [64, 64])
    scale[(16,)](a, b, z, BLOCK=64)


run()
graph, _ = capture(run)
noise = [torch.full((1024, 64), 9.0, device="cuda") for _ in range(8)]
graph.replay()
report(y, z)
