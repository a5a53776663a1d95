# expect: lifetime=PASS
# Three independent captures share one pool, outputs are kept, replays come in any order of the captures.
import torch
from _common import capture, full, report

x = full(3.0)
_ = torch.softmax(x * 2 + 1, 0)
pool = torch.cuda.graph_pool_handle()
graphs = [capture(lambda k=k: (x * k + 1).sin() * k, pool=pool) for k in (1, 2, 3)]
for graph, out in graphs:
    graph.replay()
    report(out)
