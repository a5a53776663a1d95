# expect: lifetime=FAIL
# As keyword_launch, and the input is gone; the stream is named before the executable.
import torch
from _common import capture, full, report
from cuda.bindings import driver

x = full(3.0)
_ = x * 2 + 1
graph, y = capture(lambda: x * 2 + 1, graph=torch.cuda.CUDAGraph(keep_graph=True))
error, made = driver.cuGraphInstantiate(hGraph=driver.CUgraph(graph.raw_cuda_graph()), flags=0)
stream = torch.cuda.current_stream().cuda_stream
driver.cuGraphLaunch(hStream=stream, hGraphExec=made)
torch.cuda.synchronize()
del x  # the freeing line
print(int(driver.cuGraphLaunch(hStream=stream, hGraphExec=made)[0]))
report(y * 0)
