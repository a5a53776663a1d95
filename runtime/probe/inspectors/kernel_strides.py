"""Descriptions of strides in PyTorch's by-value parameters: room for 25 dimensions, of which a tensor's own are filled in.

What follows the tensor's dimensions is not initialised and holds what the host stack held, old addresses among it. A description holds
no address itself. It is recognised by its divisors: each dimension has one with the multiplier and the shift that stand for it.
"""

from __future__ import annotations

import struct

_DIMENSIONS = 25
#: Bytes of the number of dimensions and the divisors; the strides follow, of each dimension one for each tensor.
_HEAD = 4 + 12 * _DIMENSIONS
_STRIDE = 4 * _DIMENSIONS
_MOST_TENSORS = 12
#: Bytes of an address, the sizes and the strides of one tensor, and their number, with indices of 32 and of 64 bits.
_INFO, _TENSOR_INFO = "10TensorInfoI", {216: 208, 416: 408}
#: Closures that hold a description, then an address for each of its tensors, then little more.
_CLOSURES = ("18elementwise_kernelILi", "34_scatter_gather_elementwise_kernelILi")
_INDEXING, _INDEX_CLOSURE = "16gpu_index_kernelI", 1240
_REDUCTION, _REDUCTION_TAIL = "13reduce_kernelILi", 64


def may_hold_strides(mangled: str) -> bool:
    """Whether a kernel's parameters may hold such descriptions, by its compiled name."""
    return "2at6native" in mangled or _INFO in mangled


def without_strides(mangled: str, data: bytes) -> frozenset[int] | None:
    """Byte offsets of the words of `data` that belong to descriptions of strides, or that a launch does not use otherwise.

    Args:
        mangled: The kernel's compiled name.
        data: One by-value parameter.

    Returns:
        None where no description was recognised.
    """
    if _INFO in mangled and len(data) in _TENSOR_INFO:
        dimensions = struct.unpack_from("<i", data, _TENSOR_INFO[len(data)])[0]
        return _words(8, len(data)) if 0 <= dimensions <= _DIMENSIONS else None
    if "2at6native" not in mangled or len(data) < _HEAD + _STRIDE:
        return None
    if _REDUCTION in mangled:
        return _reduction(data)
    if not described(data, 0):
        return None
    if any(len(data) == _HEAD + _STRIDE * n for n in range(1, _MOST_TENSORS)) and "16OffsetCalculatorILi" in mangled:
        return _words(0, len(data))
    if _INDEXING in mangled and len(data) == _INDEX_CLOSURE:
        return _indexing(data)
    tensors = _tensors(data) if any(name in mangled for name in _CLOSURES) else 1
    return _words(0, _HEAD + _STRIDE * tensors)


def described(data: bytes, at: int) -> bool:
    """Whether a description of strides begins at byte `at`."""
    if at + _HEAD > len(data):
        return False
    dimensions = struct.unpack_from("<i", data, at)[0]
    if not 0 <= dimensions <= _DIMENSIONS:
        return False
    return all(_divides(*struct.unpack_from("<III", data, at + 4 + 12 * i)) for i in range(dimensions))


def _divides(divisor: int, multiplier: int, shift: int) -> bool:
    """Whether a multiplication and a shift stand for a division of 32 bits."""
    if not divisor or shift > 32 or (1 << shift) < divisor or (shift and (1 << (shift - 1)) >= divisor):
        return False
    return ((((1 << 32) * ((1 << shift) - divisor)) // divisor + 1) & 0xFFFFFFFF) == multiplier


def _tensors(data: bytes) -> int:
    """How many tensors are described at the head of a closure whose addresses come next; 1 where that does not fit."""
    for tensors in range(_MOST_TENSORS, 0, -1):
        at = _after(_HEAD + _STRIDE * tensors)
        if at + 8 * tensors <= len(data):
            return tensors if _addresses(data, at, tensors) else 1
    return 1


def _indexing(data: bytes) -> frozenset[int]:
    """The closure is: strides of three tensors, output, input, number of indices, their addresses, sizes and strides, the function."""
    at = _after(_HEAD + 3 * _STRIDE)
    indices = struct.unpack_from("<i", data, at + 16)[0]
    if not (0 < indices <= _DIMENSIONS and _addresses(data, at, 2) and _addresses(data, at + 24, indices)):
        return _words(0, _HEAD + _STRIDE)
    return _words(0, at) | _words(at + 16, at + 24) | _words(at + 24 + 8 * indices, len(data))


def _reduction(data: bytes) -> frozenset[int] | None:
    """The struct is: function and settings, strides of the input, of two outputs, input, two outputs, three buffers, numbers."""
    end = len(data) - _REDUCTION_TAIL
    size = 2 * _HEAD + 3 * _STRIDE
    for at in (end - size, end - size - 4):  # the addresses are aligned
        if at >= 0 and described(data, at) and described(data, at + _HEAD + _STRIDE) and _addresses(data, end, 2):
            outputs = struct.unpack_from("<i", data, len(data) - 4)[0]
            return _words(at, end) | (_words(end + 16, end + 24) if outputs == 1 else frozenset())
    return None


def _addresses(data: bytes, at: int, count: int) -> bool:
    return at + 8 * count <= len(data) and all(w >> 32 for w in struct.unpack_from(f"<{count}Q", data, at))


def _after(end: int) -> int:
    return (end + 7) // 8 * 8


def _words(start: int, end: int) -> frozenset[int]:
    """Words that lie in a range as a whole or in part."""
    return frozenset(range(start // 8 * 8, end, 8))
