# expect: lifetime=PASS
# Two graphs draw random numbers; one goes, the seed is set anew, and the other goes on.
import torch
from _common import capture, full, report

x = full(3.0)
own = torch.Generator(device="cuda")
own.manual_seed(3)
torch.manual_seed(1)
_ = torch.nn.functional.dropout(x, 0.5)
first, a = capture(lambda: torch.nn.functional.dropout(x, 0.5))
second = torch.cuda.CUDAGraph()
second.register_generator_state(own)
second, b = capture(
    lambda: torch.rand(4096, device="cuda", generator=own) + torch.rand(4096, device="cuda"), graph=second
)
first.replay()
second.replay()
report(a, b)
first.reset()
del first, a
torch.cuda.empty_cache()
torch.manual_seed(2)
noise = [full(1.0) for _ in range(4)]
for _ in range(3):
    second.replay()
report(b)
