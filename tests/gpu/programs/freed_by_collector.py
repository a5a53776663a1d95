# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The input hangs in a cycle that the garbage collector finds.
import gc

from _common import capture, full, report


class Owner:
    def __init__(self, x):
        self.x, self.me = x, self


gc.disable()
owner = Owner(full(3.0))
_ = owner.x * 2 + 1
graph, y = capture(lambda: owner.x * 2 + 1)
owner = None
graph.replay()
gc.collect()  # the freeing line
graph.replay()
report(y)
