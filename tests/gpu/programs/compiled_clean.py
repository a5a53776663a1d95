# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=parameter_replaced
# torch.compile captures by itself, into one pool, and keeps memory of earlier outputs by addresses.
import torch
from _common import report

torch.manual_seed(0)
model = (
    torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128))
    .cuda()
    .requires_grad_(False)
)
compiled = torch.compile(model, mode="reduce-overhead")
for step in range(6):
    torch.compiler.cudagraph_mark_step_begin()
    out = compiled(torch.full((16, 128), 0.1 * step, device="cuda"))
    out = compiled(out.clone())
    report(out.clone())
