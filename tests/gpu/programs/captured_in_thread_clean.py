# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=captured_in_thread
# One thread captures, another replays on a stream of its own; the input is kept.
import threading

import torch
from _common import capture, full, report

made = {}


def work():
    made["x"] = x = full(3.0)
    _ = x * 2 + 1
    made["graph"], made["y"] = capture(lambda: x * 2 + 1)
    torch.cuda.synchronize()


def replay():
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(10):
            made["graph"].replay()
        torch.cuda.synchronize()


for task in (work, replay):
    thread = threading.Thread(target=task)
    thread.start()
    thread.join()
report(made["y"])
