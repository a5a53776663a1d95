"""Plants one fault in an unmodified SGLang, right after its graphs were captured; for tests only, never installed.

This folder on PYTHONPATH is enough: SGLang loads the entry point beside this file in every scheduler process. The variable
`SGL_GRAPH_FAULT=NAME`, or `NAME@RANK` for one rank alone, chooses the fault; `tests/gpu/fault_rows.py` says what each must
lead to. Nothing is planted in a server without graphs, so an eager reference stays right under the same environment.

A fault that frees memory names its line `# the planted line`; what is freed is then handed to another owner, since whether
a server does that by itself within a minute of traffic is chance. Nothing here reads or writes a file of SGLang.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

VARIABLE = "SGL_GRAPH_FAULT"
#: Every runner of a scheduler process has captured its graphs when this returns.
CAPTURED = "sglang.srt.model_executor.model_runner.ModelRunner.init_cuda_graphs"
#: The decode batch that falls back to eager execution.
BUCKET = 4
#: A prompt that no decode batch and no captured prefill reaches.
LONG_PROMPT = 512
_MOST_TENANTS = 50_000
_GRANULE = 512

Interval = tuple[int, int]
#: Those who live in freed memory from now on.
_tenants: list[Any] = []


def activate() -> None:
    """SGLang's plugin entry point: arm the fault that the environment names, in processes that capture."""
    name = os.environ.get(VARIABLE)
    if not name or multiprocessing.parent_process() is None:
        return
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(CAPTURED, functools.partial(after_capture, name), HookType.AFTER)


def after_capture(chosen: str, _: Any, runner: Any, *args: Any, **kwargs: Any) -> None:
    """Plant the chosen fault in a runner that holds graphs, and say so in the server's log.

    Raises:
        KeyError: There is no such fault; the server must not come up without it.
    """
    name, _, rank = chosen.partition("@")
    plant = FAULTS[name]
    decode = runner.decode_cuda_graph_runner
    if not getattr(getattr(decode, "backend", None), "_graphs", None):
        return
    mine = int(runner.ps.tp_rank)
    if rank and mine != int(rank):
        return
    plant(runner)
    print(f"{VARIABLE}: {name} planted on rank {mine}", flush=True)


# Lifetime: memory that graphs go on using


def recreate_lora_buffers(runner: Any) -> None:
    """The adapters' buffers are made anew; modules and loader learn of it, graphs read the old ones."""
    manager = runner.lora_manager
    pool = manager.memory_pool
    old: list[Any] = []
    for buffers in (pool.A_buffer, pool.B_buffer):
        for layers in buffers.values():
            old.extend(layers)
            layers[:] = [layer.clone() for layer in layers]
    manager.update_lora_info()
    spans = [span(buffer) for buffer in old]
    kind = old[0].new_empty(0)
    old.clear()  # the planted line
    move_in(spans, kind, _noise)


def rebind_weight(runner: Any) -> None:
    """A weight gets equal values in new memory; whoever asks the module is right, graphs read the old memory."""
    weight = dict(runner.model.named_parameters())["model.layers.1.mlp.down_proj.weight"]
    spans = [span(weight)]
    weight.data = weight.data.clone()  # the planted line
    move_in(spans, weight.data.new_empty(0), _noise)


def regrow_workspace(runner: Any) -> None:
    """A long prompt makes the attention backend's decode workspace grow; decode graphs keep the old one."""
    backend = runner.attn_backend
    prepare = backend.init_forward_metadata

    @functools.wraps(prepare)
    def prepare_and_grow(forward_batch: Any) -> Any:
        done = prepare(forward_batch)
        if forward_batch.forward_mode.is_extend() and forward_batch.extend_num_tokens >= LONG_PROMPT:
            backend.init_forward_metadata = prepare
            grow(backend)
        return done

    backend.init_forward_metadata = prepare_and_grow


def grow(backend: Any) -> None:
    """Twice the rows, as for twice the batch."""
    rows, *rest = backend.cuda_graph_attn_logits.shape
    bigger = backend.cuda_graph_attn_logits.new_zeros((2 * rows, *rest))
    backend.cuda_graph_attn_logits = bigger  # the planted line


def drop_metadata(runner: Any) -> None:
    """The tensor that says where each request's cached tokens begin loses its only owner; the new one is refreshed."""
    backend = runner.attn_backend
    spans = [span(backend.kv_indptr)]
    backend.forward_metadata = None
    backend.kv_indptr = backend.kv_indptr.new_zeros(backend.kv_indptr.shape)  # the planted line
    move_in(spans, backend.kv_indptr.new_empty(0), _counting)


# Numerical alone: every block stays alive


def freeze_seq_lens(runner: Any) -> None:
    """The lengths that decode graphs are planned from are no longer copied from the batch."""
    runner.decode_cuda_graph_runner.buffer_registry.get_slot("seq_lens").copy_from_fb = False


def replay_before_reading(runner: Any) -> None:
    """Outputs are handed on as views of the graphs' buffer, and the graph runs once more before anybody reads them."""
    decode = runner.decode_cuda_graph_runner
    execute = decode.execute

    @functools.wraps(execute)
    def execute_and_run_on(forward_batch: Any, *args: Any, **kwargs: Any) -> Any:
        handed_on = execute(forward_batch, *args, **kwargs)
        decode.buffers.input_ids.zero_()
        decode.buffers.out_cache_loc.zero_()  # slot 0 is nobody's
        decode.backend.replay(decode._replay_graph_key, forward_batch)
        return handed_on

    decode.execute = execute_and_run_on


# Coverage


def serve_bucket_eagerly(runner: Any) -> None:
    """Decode batches of one size run without their graph, on this rank alone if one was named."""
    decode, eager = runner.decode_cuda_graph_runner, runner.eager_runner
    can_run, execute = decode.can_run_graph, eager.execute

    @functools.wraps(can_run)
    def can_run_others(forward_batch: Any) -> bool:
        return forward_batch.batch_size != BUCKET and bool(can_run(forward_batch))

    @functools.wraps(execute)
    def execute_beside_graphs(forward_batch: Any, *args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as entered:
            if forward_batch.forward_mode.is_decode():
                # Ranks that replay their graph talk through the communicator that was captured.
                for communicator in captured_communicators():
                    entered.enter_context(communicator.change_state(enable=True))
            return execute(forward_batch, *args, **kwargs)

    decode.can_run_graph = can_run_others
    eager.execute = execute_beside_graphs


def captured_communicators() -> Iterator[Any]:
    """The communicators that graphs of several ranks use, each once."""
    from sglang.srt.distributed import parallel_state

    names = ("_TP", "_ATTN_TP", "_MOE_EP", "_MOE_TP", "_DCP")
    groups = [getattr(parallel_state, name, None) for name in names]
    found = [getattr(group, "pynccl_comm", None) for group in groups if group is not None]
    yield from {id(communicator): communicator for communicator in found if communicator is not None}.values()


#: Name in the environment, and what plants it.
FAULTS: dict[str, Callable[[Any], None]] = {
    "lora-recreated": recreate_lora_buffers,
    "weight-rebound": rebind_weight,
    "workspace-regrown": regrow_workspace,
    "metadata-dropped": drop_metadata,
    "seq-lens-stale": freeze_seq_lens,
    "output-overwritten": replay_before_reading,
    "bucket-eager": serve_bucket_eagerly,
}


# New owners of freed memory


def span(tensor: Any) -> Interval:
    """The addresses that a tensor's memory takes."""
    storage = tensor.untyped_storage()
    begin = int(storage.data_ptr())
    return begin, begin + int(storage.nbytes())


def move_in(spans: Sequence[Interval], kind: Any, furnish: Callable[[Any], None]) -> None:
    """Take all of the freed memory for new tensors, and keep these.

    Args:
        spans: What was freed.
        kind: An empty tensor of the type and device of what was freed.
        furnish: Writes the new owners' values.

    Raises:
        RuntimeError: Some of it cannot be had, so that somebody still owns it: the fault is not what it claims to be.
    """
    item = kind.element_size()
    sizes = [end - begin for begin, end in spans]
    left = list(spans)
    taken = []
    while left:
        if len(taken) >= _MOST_TENANTS:
            raise RuntimeError(f"{len(left)} of the freed blocks still belong to somebody")
        size = sizes[len(taken)] if len(taken) < len(sizes) else min(_GRANULE, *sizes)
        tenant = kind.new_empty(max(1, size // item))
        taken.append(tenant)
        left = without(left, span(tenant))
    kept = [tenant for tenant in taken if without(spans, span(tenant)) != list(spans)]
    for tenant in kept:
        furnish(tenant)
    _tenants.extend(kept)


def without(intervals: Sequence[Interval], cut: Interval) -> list[Interval]:
    """What remains of the intervals outside `cut`."""
    found = []
    for begin, end in intervals:
        found += [(a, b) for a, b in ((begin, min(end, cut[0])), (max(begin, cut[1]), end)) if a < b]
    return found


def _noise(tenant: Any) -> None:
    """Finite values unlike the former ones, the same in every launch."""
    import torch

    generator = torch.Generator(device=tenant.device).manual_seed(len(tenant))
    tenant.normal_(0.0, 0.25, generator=generator)


def _counting(tenant: Any) -> None:
    """0, 1, 2 ...: as offsets of requests they are wrong and in bounds."""
    import torch

    tenant.copy_(torch.arange(len(tenant), dtype=tenant.dtype, device=tenant.device))
