# expect: lifetime=FAIL numerical=PASS coverage=PASS outside_guarantee=no class=freed-external-input
# A kernel compiled at run time from source.
import torch
from _common import capture, full, report

add = torch.cuda.jiterator._create_jit_fn("template <typename T> T add(T x, T y) { return x + y * T(2); }")
x, z = full(3.0), full(4.0)
add(x, z)
graph, y = capture(lambda: add(x, z))
graph.replay()
del z  # the freeing line
graph.replay()
report(y)
