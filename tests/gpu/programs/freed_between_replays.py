# expect: lifetime=FAIL numerical=FAIL coverage=PASS outside_guarantee=no class=freed-external-input
# A thousand sound replays, then the input goes, then one more.
from _common import capture, full, grab, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
for _ in range(1000):
    graph.replay()
pointer = x.data_ptr()
del x  # the freeing line
thief = grab(pointer, 9.0)
graph.replay()
report(y)
