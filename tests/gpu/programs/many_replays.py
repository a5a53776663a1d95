# expect: lifetime=PASS
# Many replays of four graphs in turn.
from _common import capture, full, report

x = full(3.0)[:1024]
_ = x * 2 + 1
graphs = [capture(lambda k=k: x * k + 1) for k in range(1, 5)]
for _ in range(25_000):
    for graph, _y in graphs:
        graph.replay()
report(*(y for _, y in graphs))
