# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=mempool_block_reused
# Two graphs are captured into a pool of the program's own, one reads the other's output.
import torch
from _common import capture, full, report

pool = torch.cuda.MemPool()
x = full(3.0)
_ = x * 2 + 1
first, h = capture(lambda: x * 2 + 1, pool=pool.id)
second, y = capture(lambda: h * 2 + 1, pool=pool.id)
for _ in range(3):
    first.replay()
    second.replay()
report(y)
