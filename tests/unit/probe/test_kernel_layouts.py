"""Unused slots of known by-value structs."""

from __future__ import annotations

import struct

from sgl_graph.runtime.probe.inspectors.kernel_layouts import unused_words

LIST = "_ZN2at6native1_25multi_tensor_apply_kernelINS1_18TensorListMetadataILi2EEENS1_1fEEvT_"
SCALARS = "_ZN2at6native1_25multi_tensor_apply_kernelINS1_28TensorListScalarListMetadataIfLi2EEENS1_1fEEvT_"
CAT = (
    "_ZN2at6native1_30CatArrayBatchedCopy_vectorizedINS1_10OpaqueTypeILj4EEEjLi1ELi128ELi1ELi16ELi4EEEvPcNS1_"
    "25CatArrInputTensorMetadataIT_T0_XT2_EXT3_EEENS1_16TensorSizeStrideIS8_Lj4EEEiS8_"
)


def tensor_list(used: int, scalar: int, size: int) -> bytes:
    data = bytearray(size)
    for i in range(2):
        for j in range(64):
            struct.pack_into("<Q", data, 8 * (64 * i + j), 0x7F0000000000 + j)
    table = 8 * 64 * 3 + scalar * 64
    data[table : table + 9] = bytes(min(k, used - 1) for k in range(9))
    return bytes(data)


def test_a_tensor_list_uses_its_first_slots_of_each_list() -> None:
    for name, scalar, size in ((LIST, 0, 3144), (SCALARS, 4, 3392)):
        unused = unused_words(name, tensor_list(3, scalar, size), (9, 1, 1))
        assert unused is not None
        used = set(range(0, size - 7, 8)) - unused
        assert used == {0, 8, 16, 512, 520, 528}


def test_a_struct_of_another_size_is_not_narrowed() -> None:
    assert unused_words(LIST, tensor_list(3, 0, 3160), (9, 1, 1)) is None
    assert unused_words("_Zsomething", bytes(3144), (9, 1, 1)) is None


def test_a_concatenation_uses_one_address_a_row_of_its_grid() -> None:
    data = struct.pack("<5Q", *[0x7F0000000000 + i for i in range(5)]) + bytes(2720 - 40)
    unused = unused_words(CAT, data, (128, 3, 1))
    assert unused is not None and 16 not in unused and 24 in unused
    assert unused_words(CAT, bytes(2720), (128, 3, 1)) is None
