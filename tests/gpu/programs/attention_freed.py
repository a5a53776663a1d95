# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The keys of a fused attention kernel, whose parameters are one large struct.
import torch
from _common import capture, report

torch.manual_seed(0)
q, k, v = (torch.randn(2, 8, 128, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
attend = torch.nn.functional.scaled_dot_product_attention
attend(q, k, v)
graph, y = capture(lambda: attend(q, k, v))
graph.replay()
del k  # the freeing line
graph.replay()
report(q)
