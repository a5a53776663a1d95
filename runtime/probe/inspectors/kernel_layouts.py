"""By-value structs whose unused slots hold whatever the host stack held: which words of them a launch does not use.

PyTorch's multi-tensor and concatenation kernels take fixed arrays of addresses of which a launch fills the first few; what describes
the strides of tensors (`kernel_strides`) has room for more dimensions than they have. The rest is not initialised, and an old address
in it is no reference. Only a struct whose size or head agrees with the layout is narrowed; of any other struct every word counts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import lru_cache, partial

from .kernel_strides import may_hold_strides, without_strides

_OPTIMIZER_LIST = re.compile(r"FusedOptimizerTensorListMetadataILi(\d+)EE")
#: The kernel that ends a norm of many tensors, with the length of its name.
_ADDRESSES = "19TensorListAddresses"
_TENSOR_LIST = re.compile(r"TensorListMetadataILi(\d+)EE")
_SCALAR_LIST = re.compile(r"TensorListScalarListMetadataI\w+?Li(\d+)EE")
_CONCATENATION = re.compile(r"CatArrayBatchedCopy\w*?I.*?Li\d+ELi(\d+)ELi\d+E.*CatArr\w*InputTensorMetadata")
#: Tensors and blocks a launch, by number of lists; the second row is for launches with large kernel arguments.
_TENSORS = ((110, 64, 48, 36, 30), (770, 448, 336, 252, 210))
_SCALAR_TENSORS = ((96, 64, 48, 36, 30), (672, 448, 336, 252, 210))
_BLOCKS = (320, 2240)
#: Bytes of a concatenation's sizes and strides of four dimensions each, with indices of 32 bits.
_STRIDES = 32


def unused_words(mangled: str, data: bytes, grid: tuple[int, int, int]) -> frozenset[int] | None:
    """Byte offsets of the words of `data` that the launch does not use; None where the layout is not known.

    Args:
        mangled: The kernel's compiled name.
        data: One by-value parameter.
        grid: The launch's grid.
    """
    known = _layout(mangled)
    return None if known is None else known(data, grid)


_Layout = Callable[[bytes, tuple[int, int, int]], frozenset[int] | None]


@lru_cache(maxsize=4096)
def _layout(mangled: str) -> _Layout | None:
    """What is known of a kernel by its name alone."""
    match = _OPTIMIZER_LIST.search(mangled)
    if match:
        lists = int(match[1])
        return lambda data, grid: _tensor_list(lists, _SCALAR_TENSORS, (8,), data, grid[0], steps=True)
    for pattern, tensors, scalars in (
        (_TENSOR_LIST, _TENSORS, (0,)),
        (_SCALAR_LIST, _SCALAR_TENSORS, (2, 4, 8, 16)),
    ):
        match = pattern.search(mangled)
        if match:
            return partial(_of_lists, int(match[1]), tensors, scalars)
    match = _CONCATENATION.search(mangled)
    if match:
        batch = int(match[1])
        return lambda data, grid: _concatenation(batch, data, grid[1])
    if _ADDRESSES in mangled:
        return lambda data, grid: _one_a_block(data, grid[0])
    return (lambda data, _: without_strides(mangled, data)) if may_hold_strides(mangled) else None


def _of_lists(
    lists: int, tensors: tuple[tuple[int, ...], ...], scalars: tuple[int, ...], data: bytes, grid: tuple[int, int, int]
) -> frozenset[int] | None:
    return _tensor_list(lists, tensors, scalars, data, grid[0])


def _one_a_block(data: bytes, blocks: int) -> frozenset[int] | None:
    """The struct holds addresses, of which each block reads one."""
    return frozenset(range(8 * blocks, len(data), 8)) if len(data) % 8 == 0 and 0 < 8 * blocks <= len(data) else None


def _tensor_list(
    lists: int,
    rows: tuple[tuple[int, ...], ...],
    scalars: tuple[int, ...],
    data: bytes,
    blocks: int,
    *,
    steps: bool = False,
) -> frozenset[int] | None:
    """The struct is: addresses a list, numbers of elements, scalars, tensor of each block, chunk of each block, start.

    With `steps` the scalars are addresses too.
    """
    if not 1 <= lists <= len(rows[0]):
        return None
    for row, most_blocks in zip(rows, _BLOCKS, strict=True):
        tensors = row[lists - 1]
        for scalar in scalars:
            for width in (1, 2):  # the tensor of a block: unsigned char, or unsigned short with large arguments
                table = 8 * tensors * (lists + 1) + scalar * tensors
                end = _align(table + width * most_blocks, 4) + 4 * most_blocks
                if len(data) not in (_align(end, 8), _align(end + 4, 8)) or not 0 < blocks <= most_blocks:
                    continue
                used = max(struct.unpack_from(f"<{blocks}{'B' if width == 1 else 'H'}", data, table)) + 1
                if used > tensors:
                    return None
                at = [*range(lists), *([lists + 1] if steps else [])]
                addresses = {8 * (i * tensors + j) for i in at for j in range(used)}
                return frozenset(set(range(0, len(data) - 7, 8)) - addresses)
    return None


def _concatenation(batch: int, data: bytes, inputs: int) -> frozenset[int] | None:
    """The struct begins with the addresses of the inputs, of which there is one a row of the grid; the output's strides hold none."""
    if len(data) in (_STRIDES, 2 * _STRIDES):
        return frozenset(range(0, len(data), 8))
    if not 0 < inputs <= batch or len(data) < 8 * batch:
        return None
    if not all(value >> 32 for value in struct.unpack_from(f"<{inputs}Q", data)):
        return None
    return frozenset(range(8 * inputs, len(data) - 7, 8))


def _align(value: int, to: int) -> int:
    return (value + to - 1) // to * to
