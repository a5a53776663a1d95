"""Functions of cuda-bindings under the probe: in whatever form they are called, and whatever they do to which graph."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import read_receipts
from sgl_graph.runtime.probe.inspectors import cuda_launch
from sgl_graph.runtime.probe.inspectors.call_arguments import Picker, parameter_names
from sgl_graph.runtime.probe.patching import Patches

from tests.fakes.fake_cuda import Node, kernel
from tests.unit.probe.bench import Bench, Run


class Compiled:
    """A function of an extension module: its names stand in its docstring alone."""

    def __init__(self, head: str, function: Callable[..., Any]) -> None:
        self.__doc__ = f"{head}\n\nDoes something."
        self.__name__ = head.partition("(")[0]
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


class Bindings(ModuleType):
    """The functions of cuda-bindings on the graphs of a bench; a graph's executable has its number plus 500."""

    def __init__(self, b: Bench, *, compiled: bool = False) -> None:
        super().__init__("cuda.bindings.runtime")
        self.launched: list[tuple[int, int]] = []
        graphs = b.torch.driver.graphs

        def launch(graphExec: int, stream: int) -> tuple[int]:
            self.launched.append((graphExec, stream))
            return (0,)

        def destroy_node(node: int) -> tuple[int]:
            del graphs[node // 1000][node % 1000]
            return (0,)

        def clone(originalGraph: int) -> tuple[int, int]:
            graphs[originalGraph + 900] = list(graphs[originalGraph])
            return 0, originalGraph + 900

        def end_capture(stream: int) -> tuple[int, int]:
            return 0, 800

        functions: dict[str, tuple[str, Callable[..., Any]]] = {
            "cudaGraphLaunch": ("(graphExec, stream)", launch),
            "cudaGraphUpload": ("(graphExec, stream)", lambda graphExec, stream: (0,)),
            "cudaGraphInstantiate": ("(graph, unsigned long long flags)", lambda graph, flags: (0, graph + 500)),
            "cudaGraphExecUpdate": ("(hGraphExec, hGraph)", lambda hGraphExec, hGraph: (0, None)),
            "cudaGraphExecDestroy": ("(graphExec)", lambda graphExec: (0,)),
            "cudaGraphExecMemsetNodeSetParams": (
                "(hGraphExec, node, cudaMemsetParams p: Optional[cudaMemsetParams])",
                lambda hGraphExec, node, p: (0,),
            ),
            "cudaGraphNodeSetEnabled": (
                "(hGraphExec, hNode, unsigned int isEnabled)",
                lambda hGraphExec, hNode, isEnabled: (0,),
            ),
            "cudaGraphDestroyNode": ("(node)", destroy_node),
            "cudaGraphClone": ("(originalGraph)", clone),
            "cudaStreamEndCapture": ("(stream)", end_capture),
        }
        for name, (head, function) in functions.items():
            setattr(self, name, Compiled(name + head, function) if compiled else function)
        b.inspector.launches.patch(self)


def verdict(b: Bench) -> tuple[str, str]:
    b.recorder.close("exit")
    path = b.recorder.config.receipts / f"{b.recorder.worker}.jsonl"
    result = lifetime_verdict([read_receipts(path)])
    return result.value, result.reason


def kept(b: Bench, body: Callable[[], list[Node]]) -> Any:
    return b.torch.capture(body, b.torch.cuda.CUDAGraph(True))


@pytest.mark.parametrize("compiled", [False, True])
def test_arguments_are_taken_by_name_in_any_order(bench: Run, compiled: bool) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graphs = [kept(b, lambda: [kernel(x)]) for _ in range(2)]
    c: Any = Bindings(b, compiled=compiled)
    _, made = c.cudaGraphInstantiate(flags=0, graph=graphs[0].raw_cuda_graph())
    c.cudaGraphLaunch(stream=5, graphExec=made)
    c.cudaGraphExecUpdate(hGraph=graphs[1].raw_cuda_graph(), hGraphExec=made)
    c.cudaGraphLaunch(made, stream=5)
    assert c.launched == [(made, 5), (made, 5)]
    assert [w for w in b.timeline() if w.startswith("replay")] == ["replay 0", "replay 1"]


def test_what_the_function_refuses_is_the_programs_affair(bench: Run) -> None:
    b = bench()
    c: Any = Bindings(b)
    for call in (c.cudaGraphLaunch, c.cudaGraphInstantiate, c.cudaGraphExecUpdate, c.cudaGraphClone):
        with pytest.raises(TypeError):
            call(nonsense=1)
        with pytest.raises(TypeError):
            call()
    assert b.records("capture") == []


@pytest.mark.parametrize(
    ("function", "given"),
    [
        ("cudaGraphExecMemsetNodeSetParams", {"p": None, "node": 1000}),
        ("cudaGraphNodeSetEnabled", {"hNode": 1000, "isEnabled": 0}),  # a node that was switched off
    ],
)
def test_changes_of_an_executable_by_name_are_seen(bench: Run, function: str, given: dict[str, Any]) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graph = kept(b, lambda: [kernel(x)])
    c: Any = Bindings(b)
    _, made = c.cudaGraphInstantiate(graph.raw_cuda_graph(), 0)
    getattr(c, function)(**given, hGraphExec=made)
    c.cudaGraphLaunch(made, 5)
    assert verdict(b)[0] == "INCOMPLETE"


def test_an_edit_of_a_graph_at_a_handle_that_was_a_clones_counts(bench: Run) -> None:
    """The driver gives handles out again."""
    b = bench()
    x = b.memory.malloc(512)
    first = kept(b, lambda: [kernel(x)])
    c: Any = Bindings(b)
    _, clone = c.cudaGraphClone(first.raw_cuda_graph())
    second = kept(b, lambda: [kernel(x), kernel(x)])
    b.inspector.raw[clone] = b.inspector.raw.pop(second.raw_cuda_graph())
    b.torch.driver.graphs[clone] = b.torch.driver.graphs[second.raw_cuda_graph()]
    c.cudaGraphDestroyNode(b.torch.driver.nodes(clone)[1])
    second.replay()
    assert verdict(b)[0] == "INCOMPLETE"


def test_a_node_that_was_destroyed_changed_its_graph(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graph = kept(b, lambda: [kernel(x), kernel(x)])
    c: Any = Bindings(b)
    c.cudaGraphDestroyNode(node=b.torch.driver.nodes(graph.raw_cuda_graph())[1])
    graph.replay()
    assert verdict(b)[0] == "INCOMPLETE"


def with_temporary(b: Bench, x: int) -> Callable[[], list[Node]]:
    def body() -> list[Node]:
        t, y = b.memory.malloc(512), b.memory.malloc(512)
        b.memory.free(t)
        return [kernel(x, t), kernel(t, y)]

    return body


def test_a_clone_is_launched_as_the_graph_that_it_was_cloned_from(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graph = kept(b, with_temporary(b, x))
    c: Any = Bindings(b)
    _, made = c.cudaGraphInstantiate(c.cudaGraphClone(graph.raw_cuda_graph())[1], 0)
    c.cudaGraphLaunch(made, 5)
    b.memory.free(x)
    assert [w for w in b.timeline() if w.startswith("replay")] == ["replay 0"]


def test_a_clone_that_was_edited_is_judged_by_nobody(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graph = kept(b, with_temporary(b, x))
    c: Any = Bindings(b)
    _, clone = c.cudaGraphClone(graph.raw_cuda_graph())
    c.cudaGraphDestroyNode(b.torch.driver.nodes(clone)[1])
    c.cudaGraphLaunch(c.cudaGraphInstantiate(clone, 0)[1], 5)
    value, reason = verdict(b)
    assert value == "INCOMPLETE" and "graph 0 keeps for itself" in reason


def test_a_capture_through_the_bindings_is_read_when_it_ends(bench: Run) -> None:
    """Its temporary is somebody else's by the time an executable is made of it."""
    b = bench()
    c: Any = Bindings(b)
    t = b.memory.malloc(512)
    b.torch.driver.graphs[800] = [kernel(t)]
    b.memory.free(t)
    _, raw = c.cudaStreamEndCapture(stream=3)
    assert b.memory.malloc(512) == t
    c.cudaGraphLaunch(c.cudaGraphInstantiate(raw, 0)[1], 5)
    assert verdict(b)[0] == "FAIL"


@pytest.mark.parametrize(("use", "expected"), [(None, "INCOMPLETE"), ("upload", "PASS"), ("launch", "PASS")])
def test_a_handle_that_never_comes_back_may_be_launched_unseen(bench: Run, use: str | None, expected: str) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graph = kept(b, lambda: [kernel(x)])
    graph.replay()
    c: Any = Bindings(b)
    handle = graph.raw_cuda_graph_exec()
    if use is not None:
        (c.cudaGraphUpload if use == "upload" else c.cudaGraphLaunch)(stream=5, graphExec=handle)
    assert verdict(b)[0] == expected


def test_a_launch_on_another_stream_runs_while_this_one_is_captured(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    c: Any = Bindings(b)
    graph = kept(b, lambda: [kernel(x)])
    _, made = c.cudaGraphInstantiate(graph.raw_cuda_graph(), 0)

    def body() -> list[Node]:
        c.cudaGraphLaunch(made, 5)
        c.cudaGraphLaunch(made, 7)  # captured: it runs with the graph alone
        return [kernel()]

    b.torch.capture(body)
    assert [w for w in b.timeline() if w.startswith("replay")] == ["replay 0"]


def test_functions_taken_before_torch_was_imported_are_seen(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_launch, "_waiting", [])
    module = ModuleType("cuda.bindings.runtime")
    module.cudaGraphInstantiate = before = lambda graph, flags: (0, graph + 500)  # type: ignore[attr-defined]
    module.cudaGraphLaunch = lambda graphExec, stream: (0,)  # type: ignore[attr-defined]
    cuda_launch.early(module)
    taken = [module.cudaGraphInstantiate, module.cudaGraphLaunch]
    assert taken[0](3, 0) == (0, 503)  # there is nobody yet to be told
    b = bench()
    x = b.memory.malloc(512)
    graph = kept(b, lambda: [kernel(x)])
    taken[1](taken[0](graph.raw_cuda_graph(), 0)[1], 5)
    assert [w for w in b.timeline() if w.startswith("replay")] == ["replay 0"]
    b.inspector.remove()
    assert module.cudaGraphInstantiate is before


def test_names_of_parameters() -> None:
    def plain(a: int, /, b: int, *rest: int, c: int = 0, **more: int) -> None: ...

    assert parameter_names(plain) == ["a", "b", "c"]
    head = "f(graph, pNodes: Optional[tuple[int] | list[int]], size_t count, char* name = (1, 2))"
    assert parameter_names(Compiled(head, plain)) == ["graph", "pNodes", "count", "name"]
    assert parameter_names(Compiled("Says nothing of it.", plain)) == []
    assert Picker(Compiled("f(first, second)", plain), 2)((), {"second": 2, "first": 1}) == [1, 2]
    assert Picker(Compiled("?", plain), 2)((), {"second": 2, "first": 1}) == [2, 1]
    assert Picker(Compiled("f(first, second)", plain), 2)((1,), {}) == [1, None]


def test_hooks_have_patches_of_their_own(bench: Run) -> None:
    b = bench()
    assert isinstance(b.inspector.launches.patches, Patches)
    assert b.inspector.launches.patches is not b.inspector.patches
