# expect: lifetime=FAIL
# A cache is grown by concatenation; the large bucket is captured again, the small one still reads the old cache.
import torch
from _common import capture, full, report

cache = {"k": full(3.0)}
buckets = {}


def record(size):
    def step():
        return cache["k"][:size] * 2 + 1

    step()
    buckets[size] = capture(step)


for size in (1024, 4096):
    record(size)
for graph, _ in buckets.values():
    graph.replay()
torch.cuda.synchronize()
cache["k"] = torch.cat([cache["k"], full(4.0)])  # the freeing line
record(4096)
buckets[4096][0].replay()
buckets[1024][0].replay()
report(buckets[4096][1])
