# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# load_state_dict(assign=True) puts new parameters in the place of the captured ones.
import torch
from _common import capture, report

torch.manual_seed(0)
model = (
    torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512))
    .cuda()
    .requires_grad_(False)
)
x = torch.ones(32, 512, device="cuda")
model(x)
graph, y = capture(lambda: model(x))
fresh = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
model.load_state_dict(fresh, assign=True)  # the freeing line
graph.replay()
report(y)
