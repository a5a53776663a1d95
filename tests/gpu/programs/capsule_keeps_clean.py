# expect: lifetime=PASS
# A DLPack capsule that nobody has opened keeps the input.
from _common import capture, full, report
from torch.utils.dlpack import from_dlpack, to_dlpack

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1)
capsule = to_dlpack(x)
del x
noise = [full(1.0) for _ in range(4)]
graph.replay()
report(y, from_dlpack(capsule))
