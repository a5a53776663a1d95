# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# set_ points the same tensor object at another storage.
from _common import capture, full, report

x, other = full(3.0), full(4.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
x.set_(other)  # the freeing line
graph.replay()
report(y)
