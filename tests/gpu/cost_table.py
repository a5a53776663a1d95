"""What was measured of servers, and the table of it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any


@dataclass
class Measured:
    """All that was measured of a variant."""

    start: float = 0.0
    capture: float = 0.0
    host_mib: dict[str, float] = field(default_factory=dict)
    device_mib: float | None = None
    tokens_a_second: dict[str, list[float]] = field(default_factory=dict)
    #: The same, call by call: the probe changes its way some seconds into steady load.
    calls: dict[str, list[list[float]]] = field(default_factory=dict)


def variant_of(name: str) -> str:
    """The variant of a server: `whole/2` is the second one of `whole`."""
    return name.partition("/")[0]


def captured_seconds(log: str) -> float:
    """What the server itself says that its captures took."""
    return sum(float(seconds) for seconds in re.findall(r"Capture .*? end\. elapsed=([\d.]+) s", log))


def inspected(folder: Path) -> dict[str, Any]:
    """What watching took, by the receipts: captures and the milliseconds of reading them, and what the footers say."""
    spent: list[float] = []
    watched: dict[str, float] = {}
    certified = 0
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            record = json.loads(line) if line.endswith("}") else {}
            if record.get("k") == "capture":
                spent.append(sum((record.get("spent") or {}).values()) / 1000)
            elif record.get("k") == "footer":
                for what, amount in (record.get("watched") or {}).items():
                    watched[what] = round(watched.get(what, 0) + amount, 3)
            elif record.get("k") == "recorder" and str(record.get("detail")).startswith("certificates"):
                certified += 1
    return {
        "captures": len(spent),
        "milliseconds": round(sum(spent), 1),
        "watched": watched,
        "certified": certified,
    }


def table(model: str, found: dict[str, Measured], inspection: dict[str, dict[str, Any]]) -> str:
    """The measurements as Markdown; ratios are to the median over all servers without a probe."""
    plain: dict[str, list[float]] = {}
    for name, one in found.items():
        if variant_of(name) == "ordinary":
            for what, rates in one.tokens_a_second.items():
                plain.setdefault(what, []).extend(rates)

    def cell(variant: Measured, what: str) -> str:
        own, base = variant.tokens_a_second.get(what), plain.get(what)
        if not own or not base:
            return "not measured"
        return f"{median(own):,.0f} ({median(own) / median(base):.3f})"

    lines = [
        f"| {model} | decode, batch 1 | decode, batch 8 | prefill | start | captures | host RSS / USS | device |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, one in found.items():
        cells = [cell(one, what) for what in ("decode-1", "decode-8", "prefill")]
        start = f"{one.start:.1f} s"
        host = " / ".join(f"{value:,.0f}" for value in one.host_mib.values())
        device = "-" if one.device_mib is None else f"{one.device_mib:,.0f} MiB"
        lines.append(f"| {name} | {' | '.join(cells)} | {start} | {one.capture:.2f} s | {host} MiB | {device} |")
    pooled: dict[str, dict[str, list[float]]] = {}
    for name, one in found.items():
        for what, rates in one.tokens_a_second.items():
            pooled.setdefault(variant_of(name), {}).setdefault(what, []).extend(rates)
    for name, measured in pooled.items():
        ratios = ", ".join(
            f"{what} {median(rates) / median(plain[what]):.3f}" for what, rates in measured.items() if what in plain
        )
        lines.append(f"\n{name}, all servers and rounds, median to median: {ratios}")
    for name, counted in inspection.items():
        watched = ", ".join(f"{what} {amount:,.1f}" for what, amount in counted["watched"].items())
        lines.append(
            f"\n{name}: {counted['captures']:.0f} captures read in {counted['milliseconds']} ms; "
            f"watched: {watched or 'not told'}; certificates began {counted['certified']} times."
        )
    return "\n".join(lines) + "\n"
