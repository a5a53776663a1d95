# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# Each graph has a pool of its own; the tensor that one hands to the other is dropped.
from _common import capture, full, report

x = full(3.0)
_ = (x * 2 + 1) * 2
first, h = capture(lambda: x * 2 + 1)
second, y = capture(lambda: h * 2 + 1)
first.replay()
second.replay()
del h  # the freeing line
first.replay()
second.replay()
report(y)
