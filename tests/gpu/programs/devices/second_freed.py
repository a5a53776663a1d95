# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# Two devices in one process, a graph on each with the same work; the input on the second is freed and taken.
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from _common import N, capture, report

if torch.cuda.device_count() < 2:
    raise SystemExit("two devices are needed: not shown")
made = []
for device in (0, 1):
    with torch.cuda.device(device):
        x = torch.full((N,), 3.0, device="cuda")
        _ = x * 2 + 1
        made.append([x, *capture(lambda x=x: x * 2 + 1)])
del x
for device in (0, 1):
    with torch.cuda.device(device):
        made[device][1].replay()
made[1][0] = None  # the freeing line
taken = [torch.full((N,), 9.0, device="cuda:1") for _ in range(4)]
for device in (0, 1):
    with torch.cuda.device(device):
        made[device][1].replay()
report(made[0][2])
