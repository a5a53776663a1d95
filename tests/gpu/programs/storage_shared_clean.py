# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=storage_set
# Views, detached tensors and a resize that fits come and go over one storage.
from _common import N, capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
kept = x.detach().view(-1)[: N // 2]
x.resize_(N // 4)
del x
graph.replay()
report(y, kept)
