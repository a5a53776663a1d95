# expect: lifetime=PASS
# A graph replayed inside a capture becomes a child graph.
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
inner, h = capture(lambda: x * 2 + 1)


def outer_body():
    inner.replay()
    return h + 1


outer, y = capture(outer_body)
outer.replay()
report(y)
