"""Soundness under damage: archives are bent in every way at hand, and no verdict may come out better for it.

As a command: `python tests/property/archives/damage.py CASES [SEED] [--jobs N]` prints counts by kind and outcome. Each case has a seed
of its own, so the same cases run in however many processes.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.errors import SglGraphError
from sgl_graph.analyzer.reconcile.recompute import NAMES, rests_on
from sgl_graph.analyzer.records.archive import Manifest
from sgl_graph.analyzer.records.base import canonical_json
from sgl_graph.analyzer.records.ledger import Ledger
from sgl_graph.analyzer.records.outputs import answer_digest
from sgl_graph.analyzer.records.receipts import FIRST_LINK, seal_line
from sgl_graph.runtime.archive import pretty_json
from sgl_graph.runtime.inspection import inspect, recompute

if not __package__:  # started as a command
    sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.fakes import archives

VARIANTS = {
    "clean": archives.Made(),
    "freed": archives.Made(freed=True),
    "wrong": archives.Made(wrong=("two", 1, 2)),
    "unreplayed": archives.Made(replayed=(0,), labels=["target:decode@1", "target:decode@2"]),
    "no-footer": archives.Made(footers=False),
}


#: Progress is told after each.
_PIECES = 32


@dataclass
class Base:
    """A good archive, its digest, and its verdicts."""

    root: Path
    digest: str
    verdicts: dict[str, str]
    files: list[str]


@dataclass
class Case:
    """One bent copy."""

    root: Path
    base: Base
    others: list[Base]
    random: random.Random
    touched: set[str] = field(default_factory=set)

    def pick(self, *suffixes: str) -> Path | None:
        names = [name for name in self.base.files if name.endswith(suffixes or ("",))]
        return self.root / self.random.choice(names) if names else None

    def touch(self, path: Path) -> None:
        self.touched.add(path.relative_to(self.root).as_posix())

    def changed(self) -> bool:
        """Whether the copy differs from its base at all: some mutations hit what does not matter."""
        for name in self.touched:
            old, new = self.base.root / name, self.root / name
            if not new.exists() or not old.exists() or old.read_bytes() != new.read_bytes():
                return True
        return False


def bases(folder: Path) -> list[Base]:
    """The archives that are bent."""
    made = []
    for name, what in VARIANTS.items():
        finished = archives.make(folder / name, what)
        root = folder / name
        files = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
        made.append(Base(root, finished.manifest_digest, values(finished.ledger), files))
    return made


def values(ledger: Ledger) -> dict[str, str]:
    return {name: getattr(ledger.verdicts, name).value for name in NAMES}


def flip(case: Case) -> None:
    path = case.pick()
    assert path is not None
    data = bytearray(path.read_bytes())
    for _ in range(case.random.choice([1, 1, 1, 5])):
        if data:
            data[case.random.randrange(len(data))] ^= 1 << case.random.randrange(8)
    path.write_bytes(data)
    case.touch(path)


def truncate(case: Case) -> None:
    path = case.pick()
    assert path is not None
    data = path.read_bytes()
    path.write_bytes(data[: case.random.randrange(len(data) + 1)])
    case.touch(path)


def drop(case: Case) -> None:
    path = case.pick()
    assert path is not None
    path.unlink()
    case.touch(path)


def _lines(case: Case, bend: Callable[[list[bytes]], list[bytes]], *, sign: bool = False) -> None:
    path = case.pick(".jsonl")
    assert path is not None
    lines = bend(path.read_bytes().splitlines(keepends=True))
    path.write_bytes(rechain(lines) if sign else b"".join(lines))
    case.touch(path)


def rechain(lines: list[bytes]) -> bytes:
    """The lines numbered and chained anew, as their writer would."""
    previous, out = FIRST_LINK, []
    for number, line in enumerate(lines):
        body = json.loads(line)
        del body["h"]
        body["n"] = number
        sealed, previous = seal_line(json.dumps(body, separators=(",", ":")).encode(), previous)
        out.append(sealed)
    return b"".join(out)


def drop_line(case: Case, *, sign: bool = False) -> None:
    def bend(lines: list[bytes]) -> list[bytes]:
        at = case.random.randrange(len(lines))
        return lines[:at] + lines[at + 1 :]

    _lines(case, bend, sign=sign)


def duplicate_line(case: Case) -> None:
    def bend(lines: list[bytes]) -> list[bytes]:
        at = case.random.randrange(len(lines))
        return lines[: at + 1] + lines[at:]

    _lines(case, bend)


def reorder(case: Case) -> None:
    def bend(lines: list[bytes]) -> list[bytes]:
        i, j = case.random.randrange(len(lines)), case.random.randrange(len(lines))
        lines[i], lines[j] = lines[j], lines[i]
        return lines

    _lines(case, bend)


def swap_workers(case: Case) -> None:
    first, second = case.root / "receipts/w0.jsonl", case.root / "receipts/w1.jsonl"
    a, b = first.read_bytes(), second.read_bytes()
    first.write_bytes(b)
    second.write_bytes(a)
    case.touch(first)
    case.touch(second)


def swap_archives(case: Case) -> None:
    """A file of another archive in its place; one that differs."""
    other = case.random.choice(case.others).root
    names = [
        n for n in case.base.files if (other / n).exists() and (other / n).read_bytes() != (case.root / n).read_bytes()
    ]
    path = case.root / case.random.choice(names)
    path.write_bytes((other / path.relative_to(case.root)).read_bytes())
    case.touch(path)


def duplicate_worker(case: Case) -> None:
    path = case.root / "receipts" / case.random.choice(["w2.jsonl", "w00.jsonl"])
    path.write_bytes((case.root / "receipts/w0.jsonl").read_bytes())
    case.touch(path)


def edit_number(case: Case) -> None:
    path = case.pick(".json", ".jsonl")
    assert path is not None
    if path.suffix == ".json":
        body = json.loads(path.read_bytes())
        bend_value(body, case.random)
        path.write_text(json.dumps(body))
    else:
        lines = path.read_bytes().splitlines(keepends=True)
        at = case.random.randrange(len(lines))
        body = json.loads(lines[at])
        bend_value(body, case.random)
        lines[at] = json.dumps(body, separators=(",", ":")).encode() + b"\n"
        path.write_bytes(b"".join(lines))
    case.touch(path)


def bend_value(body: Any, source: random.Random) -> None:
    """Change one leaf of a JSON value in place."""
    leaves: list[tuple[Any, Any]] = []

    def walk(at: Any) -> None:
        for key, value in at.items() if isinstance(at, dict) else enumerate(at):
            if isinstance(value, dict | list) and value:
                walk(value)
            else:
                leaves.append((at, key))

    walk(body)
    holder, key = source.choice(leaves)
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int):
        holder[key] = value + source.choice([-1, 1, 7, 1 << 40])
    elif isinstance(value, float):
        holder[key] = value * source.choice([0.5, -1, 1e6])
    elif value in ("FAIL", "INCOMPLETE", "INCONCLUSIVE", "NOT-RUN"):
        holder[key] = "PASS"
    else:
        holder[key] = source.choice(["", "PASS", None, 0, [], {}, "x" * 50])


def resign(case: Case) -> None:
    """A forger with all the tools: bend evidence, then redo every digest and the manifest."""
    bend = case.random.choice([drop_line, edit_answer, edit_ledger])
    bend(case, sign=True) if bend is drop_line else bend(case)
    manifest = json.loads((case.root / "manifest.json").read_text())
    for name in manifest["files"]:
        data = (case.root / name).read_bytes()
        manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    sealed = Manifest.model_validate(manifest).sealed()
    (case.root / "manifest.json").write_bytes(pretty_json(sealed.model_dump(mode="json")))
    case.touch(case.root / "manifest.json")


def edit_answer(case: Case) -> None:
    path = case.pick(".outputs.json")
    assert path is not None
    body = json.loads(path.read_text())
    request = case.random.choice(body["requests"])
    request["output_ids"][case.random.randrange(len(request["output_ids"]))] -= 1
    request["sha256"] = answer_digest(request["output_ids"], request["logprobs"], request["top"])
    pairs = [[r["index"], r["sha256"]] for r in body["requests"]]
    body["sha256"] = hashlib.sha256(canonical_json(pairs)).hexdigest()
    path.write_text(json.dumps(body))
    case.touch(path)


def edit_ledger(case: Case) -> None:
    path = case.root / "ledger.json"
    body = json.loads(path.read_text())
    for name in NAMES:
        body["verdicts"][name]["value"] = "PASS"
    path.write_text(json.dumps(body))
    case.touch(path)


KINDS: dict[str, Callable[[Case], None]] = {
    "flip": flip,
    "truncate": truncate,
    "drop": drop,
    "drop-line": drop_line,
    "duplicate-line": duplicate_line,
    "reorder": reorder,
    "swap-workers": swap_workers,
    "swap-archives": swap_archives,
    "duplicate-worker": duplicate_worker,
    "edit": edit_number,
    "edit-answer": edit_answer,
    "edit-ledger": edit_ledger,
    "re-signed": resign,
}


def run_case(kind: str, seed: int, made: list[Base], folder: Path) -> str:
    """Bend one archive and read it both ways; returns the outcome, raises AssertionError where soundness breaks."""
    source = random.Random(seed)
    base = source.choice(made)
    root = folder / "case"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(base.root, root)
    case = Case(root, base, [b for b in made if b is not base], source)
    KINDS[kind](case)
    expected = base.digest if kind == "re-signed" or source.random() < 0.5 else None
    outcomes = set()
    for job in ("inspect", "recompute"):
        try:
            ledger = (
                inspect(root, expected=expected)
                if job == "inspect"
                else recompute(root, expected=expected, work=None, in_place=True)[0]
            )
        except SglGraphError as error:
            assert error.message
            outcomes.add("refused")
            continue
        check(case, values(ledger), f"{kind} seed {seed} of {base.root.name}, {job}, touched {sorted(case.touched)}")
        outcomes.add("reported")
    return "+".join(sorted(outcomes)) if case.changed() else "unchanged"


def check(case: Case, found: dict[str, str], what: str) -> None:
    """The two promises."""
    for name in NAMES:
        if found[name] != "PASS":
            continue
        assert case.base.verdicts[name] == "PASS", f"{name} became PASS: {what}"
        if case.changed():
            broken = [n for n in case.touched if rests_on(name, n) and differs(case, n)]
            assert not broken, f"{name} stays PASS on evidence that does not verify: {what}"


def differs(case: Case, name: str) -> bool:
    old, new = case.base.root / name, case.root / name
    return not old.exists() or not new.exists() or old.read_bytes() != new.read_bytes()


def run_many(cases: int, seed: int, first: int = 0, step: int = 1) -> collections.Counter[tuple[str, str]]:
    """Run cases, kinds in turn: every `step`th from the `first` on."""
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    shm = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shm if shm.is_dir() else None) as name:
        folder = Path(name)
        made = bases(folder / "bases")
        kinds = list(KINDS)
        for number in range(first, cases, step):
            kind = kinds[number % len(kinds)]
            counts[kind, run_case(kind, seed + number, made, folder)] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    cases, seed, jobs = options.cases, options.seed, options.jobs
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    pieces = max(jobs, _PIECES)
    with ProcessPoolExecutor(jobs) as pool:
        parts = [pool.submit(run_many, cases, seed, first, pieces) for first in range(pieces)]
        for part in as_completed(parts):
            counts += part.result()
            print(f"{sum(counts.values())} cases", file=sys.stderr, flush=True)
    for kind in KINDS:
        shown = ", ".join(f"{outcome} {n}" for (k, outcome), n in sorted(counts.items()) if k == kind)
        print(f"{kind:<17} {shown}")
    print(f"{sum(counts.values())} cases, seed {seed}: no verdict became PASS, none stayed PASS on bent evidence")


if __name__ == "__main__":
    main()
