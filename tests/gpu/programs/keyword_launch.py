# expect: lifetime=PASS
# Every call of cuda-bindings names its arguments, in another order than the function has them.
import torch
from _common import capture, full, report
from cuda.bindings import driver, runtime

x = full(3.0)
_ = x * 2 + 1
pairs = [capture(lambda k=k: x * k + 1, graph=torch.cuda.CUDAGraph(keep_graph=True)) for k in (2, 3)]
raw = [runtime.cudaGraph_t(g.raw_cuda_graph()) for g, _ in pairs]
error, made = runtime.cudaGraphInstantiate(flags=0, graph=raw[0])
stream = torch.cuda.current_stream().cuda_stream
assert int(error) == 0
for i in (0, 1, 0):
    assert int(runtime.cudaGraphExecUpdate(hGraph=raw[i], hGraphExec=made)[0]) == 0
    assert int(runtime.cudaGraphLaunch(stream=stream, graphExec=made)[0]) == 0
    report(pairs[i][1])
assert int(driver.cuGraphLaunch(hGraphExec=driver.CUgraphExec(int(made)), hStream=stream)[0]) == 0
report(pairs[0][1])
print(int(runtime.cudaGraphExecDestroy(graphExec=made)[0]))
try:
    runtime.cudaGraphLaunch(executable=made, stream=stream)
except TypeError as error:
    print(error)
