# expect: lifetime=PASS
# What a program can see of the classes that it uses: signatures, names, warnings, exceptions, subclasses and bound methods.
import functools
import inspect
import warnings

import torch
from _common import full, report

warnings.simplefilter("error")
C = torch.cuda.CUDAGraph
for name in ("capture_begin", "capture_end", "replay", "reset", "pool", "debug_dump"):
    method = getattr(C, name)
    print(
        name, inspect.signature(method), method.__name__, method.__qualname__, method.__module__, bool(method.__doc__)
    )
print(inspect.isfunction(C.replay), C.__mro__, repr(torch._C._cuda_getMemoryMetadata()))


class Strict(C):
    __slots__ = ("label",)

    def __setattr__(self, name, value):
        if name != "label":
            raise AttributeError(name)
        super().__setattr__(name, value)


def attempt(call):
    try:
        call()
        print("no error")
    except (RuntimeError, TypeError) as error:
        print(type(error).__name__, str(error).splitlines()[0])


x = full(3.0)
_ = x * 2 + 1
never = C()
attempt(never.replay)
attempt(never.capture_end)
attempt(never.reset)
attempt(functools.partial(C.replay, never))
attempt(lambda: C.replay())
attempt(lambda: C().capture_begin(nonsense=1))
attempt(lambda: C().capture_begin(capture_error_mode="nonsense"))
graph = Strict()
graph.label = 1
pool = torch.cuda.graph_pool_handle()
stream = torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(stream):
    graph.capture_begin(pool=pool, capture_error_mode="thread_local")
    y = x * 2 + 1
    graph.capture_end()
torch.cuda.synchronize()
print(graph.pool() == pool, isinstance(graph, C), graph.label)
again, call = graph.replay, functools.partial(C.replay, graph)
for step in (again, call, functools.partial(list, (again() for _ in range(2)))):
    step()
attempt(lambda: graph.capture_begin())
attempt(lambda: graph.instantiate())
attempt(lambda: graph.raw_cuda_graph())
again()
report(y)
broken = C()


def body():
    with torch.cuda.graph(broken):
        (x * 2).cpu()


attempt(body)
print(repr(torch._C._cuda_getMemoryMetadata()))
again()
report(y)
