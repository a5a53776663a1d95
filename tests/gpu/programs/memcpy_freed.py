# expect: lifetime=FAIL
# Only a copy node references the freed tensor.
from _common import capture, full, report

x, y = full(3.0), full(0.0)
graph, _ = capture(lambda: y.copy_(x))
del x  # the freeing line
graph.replay()
report(y)
