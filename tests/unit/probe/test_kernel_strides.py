"""Descriptions of strides in by-value structs: recognised by their divisors, and only there."""

from __future__ import annotations

import struct

import pytest
from sgl_graph.runtime.probe.inspectors.kernel_layouts import unused_words
from sgl_graph.runtime.probe.inspectors.kernel_strides import described

GRID = (1, 1, 1)
ELEMENTWISE = "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastI3addEEvRNS_1tEEUliE_EEviT1_"
INDEX = "_ZN2at6native24index_elementwise_kernelILi128ELi4EZNS0_16gpu_index_kernelI1fEEvR1tEUliE_EEvlT1_"
TAKE = "_ZN2at6native24index_elementwise_kernelILi128ELi4EZNS0_4takeI1fEEvR1tEUliE_EEvlT1_"
REDUCE = "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIf3sumjfLi4EEEEEvT1_"
TOPK = "_ZN2at6native6sbtopk10gatherTopKIfjEEvNS_4cuda6detail10TensorInfoIKfjEEjNS5_IfjEE"
UNROLLED = "_ZN2at6native29unrolled_elementwise_kernelI1fLi4E16OffsetCalculatorILi2EjLb0EES2_ILi1EjLb0EEEEviT0_"
OLD = 0x7F00DEAD0000


def divider(divisor: int) -> tuple[int, int, int]:
    shift = (divisor - 1).bit_length()
    return divisor, (((1 << 32) * ((1 << shift) - divisor)) // divisor + 1) & 0xFFFFFFFF, shift


def strides(tensors: int, sizes: tuple[int, ...]) -> bytes:
    """A description whose unused part is full of old addresses."""
    data = bytearray(struct.pack("<Q", OLD) * ((304 + 100 * tensors) // 8 + 1))[: 304 + 100 * tensors]
    struct.pack_into("<i", data, 0, len(sizes))
    for i, size in enumerate(sizes):
        struct.pack_into("<III", data, 4 + 12 * i, *divider(size))
        struct.pack_into(f"<{tensors}I", data, 304 + 4 * tensors * i, *[4 * size] * tensors)
    return bytes(data)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def used(mangled: str, data: bytes) -> list[int] | None:
    unused = unused_words(mangled, data, GRID)
    return None if unused is None else sorted(set(range(0, len(data) - 7, 8)) - unused)


@pytest.mark.parametrize("tensors", [1, 2, 3, 4, 5])
def test_a_closure_uses_the_addresses_behind_the_strides(tensors: int) -> None:
    head = padded(strides(tensors, (33, 7)))
    data = head + words(*[0x7F1000000000 + i for i in range(tensors)], 1, 2)
    assert used(ELEMENTWISE, data) == [len(head) + 8 * i for i in range(tensors + 2)]


def test_where_addresses_do_not_follow_only_the_least_is_left_out() -> None:
    data = padded(strides(3, (33, 7))) + words(0x7F1000000000, 5, 6, 1, 2)
    found = used(ELEMENTWISE, data)
    assert found is not None and found[0] == 408 and 608 in found


def test_divisors_that_contradict_their_multipliers_are_no_description() -> None:
    data = bytearray(padded(strides(2, (33, 7))) + words(OLD, OLD, 1, 2))
    assert described(bytes(data), 0)
    data[8] ^= 1
    assert not described(bytes(data), 0) and used(ELEMENTWISE, bytes(data)) is None
    assert used("_Z6mine", padded(strides(2, (33, 7))) + words(OLD, OLD, 1, 2)) is None


def index_closure(indices: int) -> bytes:
    addresses = [0x7F2000000000 + i for i in range(indices)] + [0] * (25 - indices)
    data = padded(strides(3, (9,))) + words(0x7F1000000000, 0x7F1000000008, indices, *addresses, *range(50), OLD)
    assert len(data) == 1240
    return data


def test_an_indexing_kernel_uses_as_many_indices_as_it_has() -> None:
    assert used(INDEX, index_closure(2)) == [608, 616, 632, 640]
    assert used(INDEX, index_closure(1)) == [608, 616, 632]
    broken = index_closure(2)[:624] + words(99) + index_closure(2)[632:]
    found = used(INDEX, broken)
    assert found is not None and {608, 616, 632, 640} <= set(found) and found[0] == 408


def test_a_closure_of_another_kind_keeps_all_that_may_be_an_address() -> None:
    data = padded(strides(2, (9,))) + words(0x7F1000000000, 0x7F1000000008, 7, *[0] * 27)
    found = used(TAKE, data)
    assert found is not None and {504, 512} <= set(found) and found[0] == 408


@pytest.mark.parametrize("settings", [72, 88, 92])
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_reduction_uses_its_input_outputs_and_buffers(settings: int, outputs: int) -> None:
    head = b"\1" * settings + strides(1, (64,)) + strides(2, ())
    tail = words(0x7F1000000000, 0x7F1000000008, OLD, 0x7F1000000010, 0x7F1000000018, 0x7F1000000020, 0)
    data = padded(head) + tail + struct.pack("<ii", 1, outputs)
    end = len(data) - 64
    found = used(REDUCE, data)
    assert found is not None
    assert [at for at in found if at >= settings] == [
        at for at in range(end, len(data), 8) if outputs == 2 or at != end + 16
    ]
    assert used(REDUCE, data[:settings] + words(OLD) * ((len(data) - settings) // 8)) is None


@pytest.mark.parametrize(("size", "at"), [(216, 208), (416, 408)])
def test_a_tensor_with_strides_has_one_address(size: int, at: int) -> None:
    data = bytearray(words(0x7F1000000000) + words(OLD) * (size // 8 - 1))
    struct.pack_into("<i", data, at, 2)
    assert used(TOPK, bytes(data)) == [0]
    struct.pack_into("<i", data, at, 26)
    assert used(TOPK, bytes(data)) is None


def test_a_description_alone_has_no_address() -> None:
    assert used(UNROLLED, strides(2, (33, 7))) == []
    assert used(UNROLLED, words(0x7F1000000000, 0x7F1000000008)) is None


def test_an_optimizers_lists_hold_addresses_of_steps_too() -> None:
    name = "_ZN2at6native1_25multi_tensor_apply_kernelINS1_31FusedOptimizerTensorListMetadataILi4EEE1fEEvT_"
    data = bytearray(words(OLD) * (3336 // 8))
    data[8 * 36 * 6 : 8 * 36 * 6 + 5] = bytes([0, 0, 1, 1, 1])
    unused = unused_words(name, bytes(data), (5, 1, 1))
    assert unused is not None
    lists = [0, 36, 72, 108, 180]
    assert sorted(set(range(0, 3329, 8)) - unused) == sorted(8 * (first + j) for first in lists for j in range(2))


def test_the_end_of_a_norm_reads_one_address_a_block() -> None:
    name = "_ZN2at6native14lpnorm_cleanupIfLNS0_8NormTypeE1EEEvPKT_NS0_19TensorListAddressesEi"
    unused = unused_words(name, words(OLD) * 400, (3, 1, 1))
    assert unused is not None and sorted(set(range(0, 3200, 8)) - unused) == [0, 8, 16]


def test_strides_of_a_concatenation_hold_no_address() -> None:
    name = "_ZN2at6native1_19CatArrayBatchedCopyINS1_10OpaqueTypeILj4EEEjLi2ELi64ELi64EEEvPT_NS1_25CatArrInputTensorMetadataIS3_jLi64ELi64EEE"
    assert used(name, words(OLD, 1, OLD, OLD)) == []
