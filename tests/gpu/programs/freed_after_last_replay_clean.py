# expect: lifetime=PASS numerical=PASS coverage=PASS outside_guarantee=no class=clean twin_of=freed_between_replays
# The input goes after the last replay.
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
for _ in range(1000):
    graph.replay()
del x
report(y)
kept = [full(1.0) for _ in range(8)]
