# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# A short-lived thread captures; what only it owned goes with it.
import threading

import torch
from _common import capture, full, report

made = {}


def work():
    x = full(3.0)
    _ = x * 2 + 1
    made["graph"], made["y"] = capture(lambda: x * 2 + 1)
    torch.cuda.synchronize()


thread = threading.Thread(target=work)
thread.start()
thread.join()
taken = [full(8.0) for _ in range(4)]
made["graph"].replay()
report(made["y"])
