# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The storage object lives on without memory, as sharded training frees gathered parameters.
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
x.untyped_storage().resize_(0)  # the freeing line
graph.replay()
report(y)
