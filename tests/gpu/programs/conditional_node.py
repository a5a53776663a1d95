# expect: lifetime=INCOMPLETE
# A node that runs another graph or not: nothing shows what is inside.
import torch
from _common import executable, full, launch, report
from cuda.bindings import runtime

x = full(3.0)
error, graph = runtime.cudaGraphCreate(0)
error, handle = runtime.cudaGraphConditionalHandleCreate(graph, 1, 1)
assert int(error) == 0
params = runtime.cudaGraphNodeParams()
params.type = runtime.cudaGraphNodeType.cudaGraphNodeTypeConditional
params.conditional.handle = handle
params.conditional.type = runtime.cudaGraphConditionalNodeType.cudaGraphCondTypeIf
params.conditional.size = 1
error, node = runtime.cudaGraphAddNode(graph, None, None, 0, params)
assert int(error) == 0, error
body = params.conditional.phGraph_out[0]
memset = runtime.cudaMemsetParams()
memset.dst, memset.elementSize, memset.width, memset.height, memset.value = x.data_ptr(), 4, 16, 1, 0
error, _ = runtime.cudaGraphAddMemsetNode(body, None, 0, memset)
assert int(error) == 0, error
made = executable(int(graph))
torch.cuda.synchronize()
launch(made)
report(x)
