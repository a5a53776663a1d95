"""What each fault of `faults/sgl_graph_faults.py` must lead to on a real SGLang, and whether a run's ledger says exactly that.

A row holds when all of it is so: the three verdicts, the exit code, the kinds of drift, that the fault was planted in the
launches with graphs and not in the reference, and the findings: none of another kind than expected, each expected label
named, and each lifetime finding with its kernel and with the planted line in the stack that freed the memory.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from run_sglang import LORA, SMALL_PREFILL

PLUGIN = Path(__file__).with_name("faults") / "sgl_graph_faults.py"
MARK = "# the planted line"
ADAPTERS, TWO_RANKS = f"{SMALL_PREFILL} {LORA}", f"{SMALL_PREFILL} --tp-size 2"
#: Labels with sizes are declared, since the map's own requirements have none.
EVERY_BUCKET = ",".join([*(f"target:decode@{size}" for size in (1, 2, 4, 8)), "target:prefill-breakable"])
_LIFETIME = frozenset({"freed-memory", "reused-memory"})
_ATTENTION = r"_fwd_.*stage[12]|_fwd_kernel|_fwd_grouped"


@dataclass(frozen=True)
class Lifetime:
    """What every lifetime finding of a row must say, and which requirements they must name among them.

    Attributes:
        codes: Allowed codes.
        labels: Requirements, or raw labels with a size; each is named, and no other.
        kernels: Pattern; each finding's kernel matches.
        function: The plugin's function whose marked line freed the memory.
        rank: The only rank that may report it.
    """

    codes: frozenset[str]
    labels: tuple[str, ...]
    kernels: str
    function: str
    rank: int | None = None


@dataclass(frozen=True)
class Row:
    """One fault under one configuration, and what it must lead to."""

    fault: str
    flags: str
    verdicts: tuple[str, str, str]
    exit: int
    lifetime: Lifetime | None = None
    #: Coverage findings, by label.
    uncovered: tuple[str, ...] = ()
    drift: frozenset[str] = frozenset()
    options: str = "--control"
    gpus: int = 1
    #: Ranks that must say that the fault was planted.
    ranks: tuple[int, ...] = (0,)
    model: str = "llama"
    note: str = ""


_BOTH = ("target:decode", "target:prefill-breakable")
_REUSED = frozenset({"reused-memory"})
_WEIGHT = Lifetime(_REUSED, _BOTH, ".", "rebind_weight")

ROWS: dict[str, Row] = {
    "lora-recreated": Row(
        "lora-recreated",
        ADAPTERS,
        ("FAIL", "FAIL", "PASS"),
        1,
        Lifetime(_REUSED, _BOTH, "lora", "recreate_lora_buffers"),
        note="adapters are loaded into the new buffers, graphs read what lives in the old ones",
    ),
    "weight-rebound": Row(
        "weight-rebound", SMALL_PREFILL, ("FAIL", "FAIL", "PASS"), 1, _WEIGHT, note="equal values at another address"
    ),
    "workspace-regrown": Row(
        "workspace-regrown",
        SMALL_PREFILL,
        ("FAIL", "PASS", "PASS"),
        1,
        Lifetime(_LIFETIME, ("target:decode@1",), _ATTENTION, "grow"),
        note="scratch memory that nobody else writes yet: right tokens; planted by the long prompt, after all other sizes ran",
    ),
    "metadata-dropped": Row(
        "metadata-dropped",
        SMALL_PREFILL,
        ("FAIL", "FAIL", "PASS"),
        1,
        Lifetime(_REUSED, ("target:decode",), _ATTENTION, "drop_metadata"),
        note="offsets of cached tokens come from whoever owns the memory now",
    ),
    "seq-lens-stale": Row(
        "seq-lens-stale", SMALL_PREFILL, ("PASS", "FAIL", "PASS"), 1, note="alive, and no longer refreshed"
    ),
    "output-overwritten": Row(
        "output-overwritten", SMALL_PREFILL, ("PASS", "FAIL", "PASS"), 1, note="alive, and read one replay too late"
    ),
    "bucket-eager": Row(
        "bucket-eager",
        SMALL_PREFILL,
        ("PASS", "PASS", "FAIL"),
        1,
        uncovered=("target:decode@4",),
        drift=frozenset({"bucket-unreplayed"}),
        options=f"--control --expect-labels {EVERY_BUCKET}",
        note="right tokens, and a graph that never runs",
    ),
    "tp2-clean": Row("", TWO_RANKS, ("PASS", "PASS", "PASS"), 0, gpus=2, ranks=(), note="no fault"),
    "tp2-weight-rebound": Row(
        "weight-rebound@1",
        TWO_RANKS,
        ("FAIL", "FAIL", "PASS"),
        1,
        Lifetime(_REUSED, _BOTH, ".", "rebind_weight", rank=1),
        gpus=2,
        ranks=(1,),
        note="one rank's share of the weight",
    ),
    "tp2-bucket-eager": Row(
        "bucket-eager@1",
        TWO_RANKS,
        ("PASS", "PASS", "FAIL"),
        1,
        uncovered=("target:decode@4",),
        drift=frozenset({"bucket-unreplayed", "workers-differ"}),
        options=f"--control --expect-labels {EVERY_BUCKET}",
        gpus=2,
        ranks=(1,),
        note="one rank runs eagerly what the other replays",
    ),
}


def planted_lines(source: str) -> dict[str, int]:
    """The marked line of each function of the plugin."""
    found: dict[str, int] = {}
    function = ""
    for number, line in enumerate(source.splitlines(), 1):
        if head := re.match(r"def (\w+)\(", line):
            function = head[1]
        elif MARK in line and function:
            found[function] = number
    return found


@dataclass
class Checked:
    """What a row's run did otherwise than expected, and what is worth a line."""

    problems: list[str] = field(default_factory=list)
    named: list[str] = field(default_factory=list)

    def expect(self, what: str, expected: Any, found: Any) -> None:
        """Note a difference."""
        if expected != found:
            self.problems.append(f"{what}: expected {expected}, found {found}")


def check(
    row: Row, ledger: Mapping[str, Any], code: int, logs: Mapping[str, str] | None, lines: Mapping[str, int]
) -> Checked:
    """Hold a run against its row.

    Args:
        row: What was expected.
        ledger: `ledger.json`.
        code: Exit code of `sgl-graph run`.
        logs: Server logs by launch; None where they were not kept, as in an export.
        lines: The planted line of each function of the plugin, as it was when it ran.
    """
    checked = Checked()
    verdicts = ledger["verdicts"]
    for name, expected in zip(("lifetime", "numerical", "coverage"), row.verdicts, strict=True):
        checked.expect(name, expected, verdicts[name]["value"])
    checked.expect("exit code", row.exit, code)
    checked.expect("drift", sorted(row.drift), sorted({entry["kind"] for entry in ledger["drift"]}))
    if logs is not None:
        found = {launch: sorted(_ranks(row, log)) for launch, log in logs.items()}
        checked.expect("fault planted", _planted(row), found)
    findings = ledger["findings"]
    _codes(row, findings, checked)
    if row.lifetime is not None:
        about = [finding for finding in findings if finding["code"] in row.lifetime.codes]
        _lifetime(row.lifetime, about, _rank_of_workers(ledger["workers"]), lines, checked)
    return checked


def _planted(row: Row) -> dict[str, list[int]]:
    return {"eager": [], "ordinary": sorted(row.ranks), "instrumented": sorted(row.ranks)}


def _ranks(row: Row, log: str) -> set[int]:
    name = re.escape(row.fault.partition("@")[0])
    return {int(rank) for rank in re.findall(rf"SGL_GRAPH_FAULT: {name} planted on rank (\d+)", log)} if name else set()


def _codes(row: Row, findings: Iterable[Mapping[str, Any]], checked: Checked) -> None:
    allowed = set(row.lifetime.codes) if row.lifetime else set()
    allowed |= {"answers-differ"} if row.verdicts[1] == "FAIL" else set()
    uncovered = []
    for finding in findings:
        if finding["code"] == "label-not-replayed":
            uncovered.append(finding["label"])
        elif finding["code"] not in allowed:
            checked.problems.append(f"another finding: {finding['code']}: {finding['text']}")
    checked.expect("labels not replayed", sorted(row.uncovered), sorted(uncovered))


def _lifetime(
    wanted: Lifetime,
    findings: list[Mapping[str, Any]],
    ranks: Mapping[str, int],
    lines: Mapping[str, int],
    checked: Checked,
) -> None:
    line = lines[wanted.function]
    where = f"{PLUGIN.name}:{line} "
    seen = set()
    for finding in findings:
        about = f"{finding['code']} on {finding['label']}"
        freed = finding["freed_at"]
        leads = [i for i, frame in enumerate(freed) if where in frame] if isinstance(freed, list) else []
        if not leads:
            checked.problems.append(f"{about}: freed at {freed}, not at {where}{wanted.function}")
        if not re.search(wanted.kernels, str(finding["kernel"])) or finding["kernel"] == "unknown":
            checked.problems.append(f"{about}: kernel {finding['kernel']}")
        named = {label for label in wanted.labels if finding["label"] in (label, f"{label}@{_size(finding['label'])}")}
        if not named:
            checked.problems.append(f"{about}: a label that the fault does not reach")
        if wanted.rank is not None and ranks.get(finding["worker"]) != wanted.rank:
            checked.problems.append(f"{about}: worker {finding['worker']} is not rank {wanted.rank}")
        seen |= named
    checked.expect("labels with a lifetime finding", sorted(wanted.labels), sorted(seen))
    kernels = sorted({str(finding["kernel"]) for finding in findings})
    checked.named.append(
        f"{len(findings)} lifetime findings lead to {where.strip()} {wanted.function}; kernels {kernels}"
    )


def _size(label: str) -> str:
    return label.rpartition("@")[2]


def _rank_of_workers(workers: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    found = {}
    for worker in workers:
        rank = worker["rank"].get("tp") if isinstance(worker["rank"], dict) else None
        if isinstance(rank, int):
            found[str(worker["id"])] = rank
    return found
