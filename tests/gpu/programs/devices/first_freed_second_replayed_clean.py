# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=second_freed
# The input on the first device is freed, and only the graph on the second replays after that; a copy between devices is a node.
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from _common import N, capture, report

if torch.cuda.device_count() < 2:
    raise SystemExit("two devices are needed: not shown")
source = torch.full((N,), 7.0, device="cuda:0")
made = []
for device in (0, 1):
    with torch.cuda.device(device):
        x = torch.full((N,), 3.0, device="cuda")
        _ = x * 2 + 1
        made.append([x, *capture(lambda x=x: x * 2 + 1)])
with torch.cuda.device(1):
    target = torch.zeros(N, device="cuda")
    target.copy_(source)
    torch.cuda.synchronize(0)
    torch.cuda.synchronize(1)
    copying, _ = capture(lambda: target.copy_(source))
del x
for device in (0, 1):
    with torch.cuda.device(device):
        made[device][1].replay()
made[0][0] = None
for _ in range(3):
    with torch.cuda.device(1):
        made[1][1].replay()
        copying.replay()
report(made[1][2], target)
