"""What a device answers where the source asks: kind, capability, memory, by product name or by kind alone."""

from __future__ import annotations

from dataclasses import dataclass

from sgl_graph.analyzer.errors import ConfigError

KINDS = ("cuda", "hip", "npu", "xpu", "cpu", "musa", "hpu", "mps")


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Facts of one device.

    Attributes:
        kind: `cuda`, `hip`, `npu`, `xpu`, `cpu` ...
        name: the product, as the driver names it; empty when only the kind is known.
        capability: compute capability, None when unknown.
        memory: total memory in MiB as the vendor's tool reports it, None when unknown.
        cores: multiprocessors, None when unknown.
        count: devices of the host, None when unknown.
        architecture: the vendor's architecture name where it is not a capability (`gfx942`).
    """

    kind: str
    name: str = ""
    capability: tuple[int, int] | None = None
    memory: int | None = None
    cores: int | None = None
    count: int | None = None
    architecture: str | None = None


_GIB = 1024
PRODUCTS: dict[str, DeviceFacts] = {
    "t4": DeviceFacts("cuda", "Tesla T4", (7, 5), 15360, 40),
    "v100": DeviceFacts("cuda", "Tesla V100-SXM2-32GB", (7, 0), 32768, 80),
    "a10": DeviceFacts("cuda", "NVIDIA A10", (8, 6), 23028, 72),
    "a10g": DeviceFacts("cuda", "NVIDIA A10G", (8, 6), 23028, 80),
    "rtx3090": DeviceFacts("cuda", "NVIDIA GeForce RTX 3090", (8, 6), 24576, 82),
    "rtx4090": DeviceFacts("cuda", "NVIDIA GeForce RTX 4090", (8, 9), 24564, 128),
    "rtx5090": DeviceFacts("cuda", "NVIDIA GeForce RTX 5090", (12, 0), 32607, 170),
    "l4": DeviceFacts("cuda", "NVIDIA L4", (8, 9), 23034, 58),
    "l40": DeviceFacts("cuda", "NVIDIA L40", (8, 9), 46068, 142),
    "l40s": DeviceFacts("cuda", "NVIDIA L40S", (8, 9), 46068, 142),
    "a100": DeviceFacts("cuda", "NVIDIA A100-SXM4-80GB", (8, 0), 81920, 108),
    "a100-40g": DeviceFacts("cuda", "NVIDIA A100-SXM4-40GB", (8, 0), 40960, 108),
    "h20": DeviceFacts("cuda", "NVIDIA H20", (9, 0), 97871, 78),
    "h100": DeviceFacts("cuda", "NVIDIA H100 80GB HBM3", (9, 0), 81559, 132),
    "h800": DeviceFacts("cuda", "NVIDIA H800", (9, 0), 81559, 132),
    "h200": DeviceFacts("cuda", "NVIDIA H200", (9, 0), 143771, 132),
    "gh200": DeviceFacts("cuda", "NVIDIA GH200 480GB", (9, 0), 97871, 132),
    "b200": DeviceFacts("cuda", "NVIDIA B200", (10, 0), 183359, 148),
    "gb200": DeviceFacts("cuda", "NVIDIA GB200", (10, 0), 189471, 152),
    "b300": DeviceFacts("cuda", "NVIDIA B300 SXM6 AC", (10, 3), 275040, 148),
    "gb300": DeviceFacts("cuda", "NVIDIA GB300", (10, 3), 284208, 152),
    "rtxpro6000": DeviceFacts("cuda", "NVIDIA RTX PRO 6000 Blackwell Server Edition", (12, 0), 97887, 188),
    "mi250x": DeviceFacts("hip", "AMD Instinct MI250X", (9, 0), 65520, 110, architecture="gfx90a"),
    "mi300x": DeviceFacts("hip", "AMD Instinct MI300X", (9, 4), 196592, 304, architecture="gfx942"),
    "mi325x": DeviceFacts("hip", "AMD Instinct MI325X", (9, 4), 262128, 304, architecture="gfx942"),
    "mi355x": DeviceFacts("hip", "AMD Instinct MI355X", (9, 5), 294896, 256, architecture="gfx950"),
    "ascend910b": DeviceFacts("npu", "Ascend910B3", None, 64 * _GIB),
    "ascend910c": DeviceFacts("npu", "Ascend910_9382", None, 64 * _GIB),
}


def parse_device(text: str) -> DeviceFacts:
    """Facts of `--device`: a product (`h200`), a kind (`cuda`, `hip` ...) or a kind with capability (`cuda:sm90`).

    Raises:
        ConfigError: it names neither.
    """
    name = text.strip().lower().replace(" ", "").replace("_", "-")
    short = name.removeprefix("nvidia").removeprefix("amd").strip("-")
    product = PRODUCTS.get(name) or PRODUCTS.get(short) or PRODUCTS.get(short.replace("-", ""))
    if product is not None:
        return product
    kind, _, detail = name.partition(":")
    if kind in KINDS and not detail:
        return DeviceFacts(kind)
    if kind == "cuda" and detail.startswith("sm") and detail[2:].rstrip("af").isdigit() and len(detail) > 3:
        number = int(detail[2:].rstrip("af"))
        return DeviceFacts("cuda", capability=(number // 10, number % 10))
    if kind == "hip" and detail.startswith("gfx") and detail[3:5].isdigit():
        return DeviceFacts("hip", architecture=detail, capability=(int(detail[3]), int(detail[4])))
    known = ", ".join(sorted(PRODUCTS))
    raise ConfigError(
        f"unknown device: {text}", hint=f"give a kind ({', '.join(KINDS[:5])}), cuda:smNN, or a product: {known}"
    )
