# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=handover_between_pools_freed
# Each graph has a pool of its own; the tensor that one hands to the other is kept.
from _common import capture, full, report

x = full(3.0)
_ = (x * 2 + 1) * 2
first, h = capture(lambda: x * 2 + 1)
second, y = capture(lambda: h * 2 + 1)
for _ in range(3):
    first.replay()
    second.replay()
report(y)
