"""By-value structs whose unused slots hold whatever the host stack held: which words of them a launch does not use.

PyTorch's multi-tensor and concatenation kernels take fixed arrays of addresses of which a launch fills the first few. The
rest is not initialised, and an old address in it is no reference. Only a struct whose size agrees with the layout is
narrowed; of any other struct every word counts.
"""

from __future__ import annotations

import re
import struct

_TENSOR_LIST = re.compile(r"TensorListMetadataILi(\d+)EE")
_CONCATENATION = re.compile(r"CatArrayInputTensorMetadataI\w*?Li(\d+)ELi(\d+)EE")
#: Tensors and blocks a launch, by number of lists; the second row is for launches with large kernel arguments.
_TENSORS = ((110, 64, 48, 36, 30), (770, 448, 336, 252, 210))
_BLOCKS = (320, 2240)


def unused_words(mangled: str, data: bytes, grid: tuple[int, int, int]) -> frozenset[int]:
    """Byte offsets of the words of `data` that the launch does not use.

    Args:
        mangled: The kernel's compiled name.
        data: One by-value parameter.
        grid: The launch's grid.
    """
    match = _TENSOR_LIST.search(mangled)
    if match:
        return _tensor_list(int(match[1]), data, grid[0])
    match = _CONCATENATION.search(mangled)
    if match:
        return _concatenation(int(match[1]), data, grid[1])
    return frozenset()


def _tensor_list(lists: int, data: bytes, blocks: int) -> frozenset[int]:
    if not 1 <= lists <= len(_TENSORS[0]):
        return frozenset()
    for row, most_blocks in zip(_TENSORS, _BLOCKS, strict=True):
        tensors = row[lists - 1]
        for width in (1, 2):  # block_to_tensor: unsigned char, or unsigned short with large arguments
            table = 8 * tensors * (lists + 1)
            chunks = _align(table + width * most_blocks, 4)
            size = _align(chunks + 4 * most_blocks + 4, 8)
            if size != len(data) or not 0 < blocks <= most_blocks:
                continue
            used = max(struct.unpack_from(f"<{blocks}{'B' if width == 1 else 'H'}", data, table)) + 1
            if used > tensors:
                return frozenset()
            addresses = {8 * (i * tensors + j) for i in range(lists) for j in range(used)}
            return frozenset(set(range(0, len(data) - 7, 8)) - addresses)
    return frozenset()


def _concatenation(batch: int, data: bytes, inputs: int) -> frozenset[int]:
    if not 0 < inputs <= batch or len(data) < 8 * batch:
        return frozenset()
    if not all(value >> 32 for value in struct.unpack_from(f"<{inputs}Q", data)):
        return frozenset()  # the struct does not begin with the addresses: not the layout known here
    return frozenset(range(8 * inputs, len(data) - 7, 8))


def _align(value: int, to: int) -> int:
    return (value + to - 1) // to * to
