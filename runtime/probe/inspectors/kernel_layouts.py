"""By-value structs whose unused slots hold whatever the host stack held: which words of them a launch does not use.

PyTorch's multi-tensor and concatenation kernels take fixed arrays of addresses of which a launch fills the first few. The
rest is not initialised, and an old address in it is no reference. Only a struct whose size or head agrees with the layout is
narrowed; of any other struct every word counts.
"""

from __future__ import annotations

import re
import struct

_TENSOR_LIST = re.compile(r"TensorListMetadataILi(\d+)EE")
_SCALAR_LIST = re.compile(r"TensorListScalarListMetadataI\w+?Li(\d+)EE")
_CONCATENATION = re.compile(r"CatArrayBatchedCopy\w*?I.*?Li\d+ELi(\d+)ELi\d+E.*CatArr\w*InputTensorMetadata")
#: Tensors and blocks a launch, by number of lists; the second row is for launches with large kernel arguments.
_TENSORS = ((110, 64, 48, 36, 30), (770, 448, 336, 252, 210))
_SCALAR_TENSORS = ((96, 64, 48, 36, 30), (672, 448, 336, 252, 210))
_BLOCKS = (320, 2240)


def unused_words(mangled: str, data: bytes, grid: tuple[int, int, int]) -> frozenset[int] | None:
    """Byte offsets of the words of `data` that the launch does not use; None where the layout is not known.

    Args:
        mangled: The kernel's compiled name.
        data: One by-value parameter.
        grid: The launch's grid.
    """
    match = _TENSOR_LIST.search(mangled)
    if match:
        return _tensor_list(int(match[1]), _TENSORS, (0,), data, grid[0])
    match = _SCALAR_LIST.search(mangled)
    if match:
        return _tensor_list(int(match[1]), _SCALAR_TENSORS, (2, 4, 8, 16), data, grid[0])
    match = _CONCATENATION.search(mangled)
    return _concatenation(int(match[1]), data, grid[1]) if match else None


def _tensor_list(
    lists: int, rows: tuple[tuple[int, ...], ...], scalars: tuple[int, ...], data: bytes, blocks: int
) -> frozenset[int] | None:
    """The struct is: addresses a list, numbers of elements, scalars, tensor of each block, chunk of each block, start."""
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
                addresses = {8 * (i * tensors + j) for i in range(lists) for j in range(used)}
                return frozenset(set(range(0, len(data) - 7, 8)) - addresses)
    return None


def _concatenation(batch: int, data: bytes, inputs: int) -> frozenset[int] | None:
    """The struct begins with the addresses of the inputs, of which there is one a row of the grid."""
    if not 0 < inputs <= batch or len(data) < 8 * batch:
        return None
    if not all(value >> 32 for value in struct.unpack_from(f"<{inputs}Q", data)):
        return None
    return frozenset(range(8 * inputs, len(data) - 7, 8))


def _align(value: int, to: int) -> int:
    return (value + to - 1) // to * to
