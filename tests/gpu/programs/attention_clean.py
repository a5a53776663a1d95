# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=attention_freed
# Fused attention in both of torch's kernels, after eager calls with tensors that are gone.
import torch
from _common import capture, report
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
make = lambda: [torch.randn(2, 8, 128, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
attend = torch.nn.functional.scaled_dot_product_attention


def run(q, k, v):
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
        a = attend(q, k, v)
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION]):
        return a + attend(q, k, v, is_causal=True)


for _ in range(3):
    run(*make())
q, k, v = make()
graph, y = capture(lambda: run(q, k, v))
noise = [make() for _ in range(3)]
graph.replay()
report(y)
