# expect: lifetime=FAIL
# Only the child graph references the freed input; only the parent is replayed.
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
inner, h = capture(lambda: x * 2 + 1)


def outer_body():
    inner.replay()
    return h + 1


outer, y = capture(outer_body)
del x  # the freeing line
outer.replay()
report(y)
