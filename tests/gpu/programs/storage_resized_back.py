# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# The storage gives its memory back and gets the same address again: another allocation, though owner, size and address agree.
from _common import capture, full, report

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
graph.replay()
pointer, size = x.data_ptr(), x.untyped_storage().size()
x.untyped_storage().resize_(0)  # the freeing line
x.untyped_storage().resize_(size)
assert x.data_ptr() == pointer
x.fill_(3.0)
graph.replay()
report(y)
