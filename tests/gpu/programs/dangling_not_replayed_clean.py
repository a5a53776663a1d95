# expect: lifetime=PASS numerical=PASS coverage=FAIL outside_guarantee=no class=clean twin_of=freed_between_replays
# One of two graphs dangles and is not replayed any more.
from _common import capture, full, report

x, z = full(3.0), full(4.0)
_ = x * 2 + 1
old, y = capture(lambda: x * 2 + 1)
new, w = capture(lambda: z * 2 + 1)
old.replay()
report(y)
del x
new.replay()
report(w)
