"""The plugin that plants faults in SGLang, on stand-ins of SGLang's objects and of tensors with addresses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "gpu" / "faults"


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, imported as SGLang imports it."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import sgl_graph_faults

    yield sgl_graph_faults
    sgl_graph_faults._tenants.clear()
    del sys.modules["sgl_graph_faults"]


class Memory:
    """First fit over addresses; what nobody references is free again."""

    def __init__(self) -> None:
        self.live: dict[int, int] = {}

    def take(self, size: int) -> int:
        """An address of `size` free bytes, rounded as PyTorch rounds."""
        size = -(-size // 512) * 512
        at = 0
        for begin in sorted(self.live):
            if begin - at >= size:
                break
            at = begin + self.live[begin]
        self.live[at] = size
        return at


class Tensor:
    """As much of a tensor as the plugin asks for."""

    def __init__(self, memory: Memory, length: int, values: Any = None) -> None:
        self.memory, self.length, self.values = memory, length, values
        self.at = memory.take(2 * length) if length else -1
        self.shape = (length,)

    def __del__(self) -> None:
        self.memory.live.pop(self.at, None)

    def __len__(self) -> int:
        return self.length

    def untyped_storage(self) -> Any:
        return SimpleNamespace(data_ptr=lambda: self.at, nbytes=lambda: 2 * self.length)

    def element_size(self) -> int:
        return 2

    def clone(self) -> Tensor:
        return Tensor(self.memory, self.length, self.values)

    def new_empty(self, shape: Any) -> Tensor:
        return Tensor(self.memory, shape if isinstance(shape, int) else shape[0])

    def new_zeros(self, shape: Any) -> Tensor:
        return Tensor(self.memory, shape[0], 0)

    def zero_(self) -> None:
        self.values = 0


def runner_with(rank: int = 0, **members: Any) -> Any:
    """A model runner that holds one captured decode graph."""
    decode = SimpleNamespace(backend=SimpleNamespace(_graphs={1: "graph"}), can_run_graph=lambda batch: True)
    return SimpleNamespace(**{"decode_cuda_graph_runner": decode, "ps": SimpleNamespace(tp_rank=rank), **members})


def batch(size: int, *, decode: bool = True, tokens: int = 0) -> Any:
    """A forward batch."""
    mode = SimpleNamespace(is_decode=lambda: decode, is_extend=lambda: not decode)
    return SimpleNamespace(batch_size=size, forward_mode=mode, extend_num_tokens=tokens)


@pytest.fixture
def furnished(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """New owners write their values without torch."""
    for name, value in (("_noise", "noise"), ("_counting", "counting")):
        monkeypatch.setattr(plugin, name, lambda tenant, value=value: setattr(tenant, "values", value))


def test_it_is_armed_in_processes_that_capture_alone(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[tuple[str, Any]] = []
    hooks = ModuleType("sglang.srt.plugins.hook_registry")
    hooks.HookRegistry = SimpleNamespace(register=lambda target, hook, kind: registered.append((target, kind)))  # type: ignore[attr-defined]
    hooks.HookType = SimpleNamespace(AFTER="after")  # type: ignore[attr-defined]
    for name in ("sglang", "sglang.srt", "sglang.srt.plugins"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "sglang.srt.plugins.hook_registry", hooks)
    monkeypatch.setenv("SGL_GRAPH_FAULT", "bucket-eager")
    monkeypatch.setattr(plugin.multiprocessing, "parent_process", lambda: None)
    plugin.activate()
    assert registered == []
    monkeypatch.setattr(plugin.multiprocessing, "parent_process", lambda: "the launcher")
    plugin.activate()
    assert registered == [(plugin.CAPTURED, "after")]
    monkeypatch.delenv("SGL_GRAPH_FAULT")
    plugin.activate()
    assert len(registered) == 1


def test_the_entry_point_is_found_by_the_group_of_the_server(plugin: Any) -> None:
    from importlib.metadata import entry_points

    [entry] = entry_points(group="sglang.srt.plugins")
    assert entry.load() is plugin.activate
    assert entry.dist is not None and entry.dist.name == "sgl-graph-faults"


def test_nothing_is_planted_without_graphs_on_other_ranks_or_under_an_unknown_name(
    plugin: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted: list[Any] = []
    monkeypatch.setitem(plugin.FAULTS, "bucket-eager", planted.append)
    eager = SimpleNamespace(decode_cuda_graph_runner=SimpleNamespace())
    plugin.after_capture("bucket-eager", None, eager)
    plugin.after_capture("bucket-eager@1", None, runner_with(rank=0))
    assert planted == [] and capsys.readouterr().out == ""
    with pytest.raises(KeyError):
        plugin.after_capture("no-such-fault", None, runner_with())
    plugin.after_capture("bucket-eager@1", None, runner_with(rank=1))
    assert len(planted) == 1
    assert capsys.readouterr().out == "SGL_GRAPH_FAULT: bucket-eager planted on rank 1\n"


def test_adapter_buffers_are_made_anew_and_others_live_in_the_old_ones(plugin: Any, furnished: None) -> None:
    memory = Memory()
    pool = SimpleNamespace(
        A_buffer={"qkv": [Tensor(memory, 3000, "a") for _ in range(2)]},
        B_buffer={"qkv": [Tensor(memory, 500, "b") for _ in range(2)]},
    )
    module = SimpleNamespace(buffers=[*pool.A_buffer["qkv"], *pool.B_buffer["qkv"]])
    old = {tensor.at for tensor in module.buffers}

    def update() -> None:
        module.buffers = [*pool.A_buffer["qkv"], *pool.B_buffer["qkv"]]

    plugin.recreate_lora_buffers(
        SimpleNamespace(lora_manager=SimpleNamespace(memory_pool=pool, update_lora_info=update))
    )
    assert [tensor.values for tensor in module.buffers] == ["a", "a", "b", "b"]
    assert not old & {tensor.at for tensor in module.buffers}
    assert old <= {tenant.at for tenant in plugin._tenants}
    assert {tenant.values for tenant in plugin._tenants} == {"noise"}


def test_a_block_that_somebody_still_owns_is_no_fault(
    plugin: Any, furnished: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "_MOST_TENANTS", 40)
    memory = Memory()
    weight = SimpleNamespace(data=Tensor(memory, 1000, "w"), untyped_storage=lambda: weight.data.untyped_storage())
    runner = SimpleNamespace(
        model=SimpleNamespace(named_parameters=lambda: [("model.layers.1.mlp.down_proj.weight", weight)])
    )
    held = weight.data
    with pytest.raises(RuntimeError, match="still belong to somebody"):
        plugin.rebind_weight(runner)
    del held
    plugin.rebind_weight(runner)
    assert weight.data.values == "w"


def test_metadata_is_replaced_and_refreshed_elsewhere(plugin: Any, furnished: None) -> None:
    memory = Memory()
    backend = SimpleNamespace(kv_indptr=Tensor(memory, 9, 5), forward_metadata=None)
    backend.forward_metadata = SimpleNamespace(kv_indptr=backend.kv_indptr)
    old = backend.kv_indptr.at
    plugin.drop_metadata(SimpleNamespace(attn_backend=backend))
    assert backend.kv_indptr.values == 0 and backend.kv_indptr.at != old
    assert {(tenant.at, tenant.values) for tenant in plugin._tenants} == {(old, "counting")}


def test_the_workspace_grows_once_and_only_for_a_long_prompt(plugin: Any) -> None:
    memory = Memory()
    prepared: list[int] = []

    def prepare(forward_batch: Any) -> None:
        prepared.append(forward_batch.extend_num_tokens)

    backend = SimpleNamespace(cuda_graph_attn_logits=Tensor(memory, 8), init_forward_metadata=prepare)
    plugin.regrow_workspace(SimpleNamespace(attn_backend=backend))
    sizes = []
    for given in (batch(1, decode=False, tokens=250), batch(8, tokens=900), batch(1, decode=False, tokens=512)):
        backend.init_forward_metadata(given)
        sizes.append(len(backend.cuda_graph_attn_logits))
    backend.init_forward_metadata(batch(1, decode=False, tokens=600))
    assert sizes == [8, 8, 16] and len(backend.cuda_graph_attn_logits) == 16
    assert prepared == [250, 900, 512, 600]


def test_lengths_stay_as_they_are(plugin: Any) -> None:
    slots = {name: SimpleNamespace(copy_from_fb=True) for name in ("seq_lens", "positions")}
    decode = SimpleNamespace(buffer_registry=SimpleNamespace(get_slot=slots.__getitem__))
    plugin.freeze_seq_lens(SimpleNamespace(decode_cuda_graph_runner=decode))
    assert {name: slot.copy_from_fb for name, slot in slots.items()} == {"seq_lens": False, "positions": True}


def test_the_graph_runs_again_before_its_output_is_read(plugin: Any) -> None:
    output = {"logits": "of the batch"}
    inputs = SimpleNamespace(values="of the batch", zero_=lambda: setattr(inputs, "values", "zeros"))

    def replay(key: Any, forward_batch: Any) -> None:
        output["logits"] = f"of {key} over {inputs.values}"

    decode = SimpleNamespace(
        execute=lambda forward_batch, pp_proxy_tensors=None: output,
        buffers=SimpleNamespace(input_ids=inputs, out_cache_loc=SimpleNamespace(zero_=lambda: None)),
        backend=SimpleNamespace(replay=replay),
        _replay_graph_key="bs 2",
    )
    plugin.replay_before_reading(SimpleNamespace(decode_cuda_graph_runner=decode))
    assert decode.execute(batch(2), pp_proxy_tensors=None) == {"logits": "of bs 2 over zeros"}


def test_one_bucket_runs_eagerly_and_talks_to_ranks_that_replay(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[str] = []

    class Communicator:
        @contextmanager
        def change_state(self, enable: bool) -> Iterator[None]:
            states.append(f"enabled {enable}")
            yield
            states.append("restored")

    shared = Communicator()
    monkeypatch.setattr(plugin, "captured_communicators", lambda: iter([shared]))
    done: Callable[..., str] = lambda forward_batch, **_: states.append("ran") or "logits"
    runner = runner_with(eager_runner=SimpleNamespace(execute=done))
    plugin.serve_bucket_eagerly(runner)
    assert [runner.decode_cuda_graph_runner.can_run_graph(batch(size)) for size in (3, 4, 5)] == [True, False, True]
    assert runner.eager_runner.execute(batch(4), pp_proxy_tensors=None) == "logits"
    assert states == ["enabled True", "ran", "restored"]
    states.clear()
    runner.eager_runner.execute(batch(1, decode=False))
    assert states == ["ran"]


def test_communicators_are_entered_once(plugin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, other = object(), object()
    state = ModuleType("sglang.srt.distributed.parallel_state")
    group = SimpleNamespace(pynccl_comm=shared)
    state._TP = state._ATTN_TP = group  # type: ignore[attr-defined]
    state._MOE_EP, state._MOE_TP = None, SimpleNamespace(pynccl_comm=other)  # type: ignore[attr-defined]
    distributed = ModuleType("sglang.srt.distributed")
    distributed.parallel_state = state  # type: ignore[attr-defined]
    for name, module in (("sglang", ModuleType("sglang")), ("sglang.srt", ModuleType("sglang.srt"))):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "sglang.srt.distributed", distributed)
    monkeypatch.setitem(sys.modules, "sglang.srt.distributed.parallel_state", state)
    assert list(plugin.captured_communicators()) == [shared, other]


def test_intervals_are_cut(plugin: Any) -> None:
    assert plugin.without([(0, 10), (20, 30)], (5, 25)) == [(0, 5), (25, 30)]
    assert plugin.without([(0, 10)], (0, 10)) == []
    assert plugin.without([(0, 10)], (3, 4)) == [(0, 3), (4, 10)]
    assert plugin.without([(0, 10)], (10, 20)) == [(0, 10)]
